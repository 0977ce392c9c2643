"""One collection for several processes: files that all of them map, and one writer.

The writer owns the collection's DuckDB file.  Beside it, in a hidden folder, it keeps a
*generation*: the index with its tables, and the metadata, in files that every worker maps into
memory.  A write is committed in DuckDB, which makes it durable, then appended to the *tail* of the
generation, and only then acknowledged.  A worker compares two mapped numbers before each request,
and reads what was appended; so it waits for nobody, and an acknowledged write is found by every
worker.  When the tail is long, the writer makes a new generation meanwhile.
"""
