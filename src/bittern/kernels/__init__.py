"""The compiled code of the package: arrays in, arrays out.

Kernels release the interpreter's lock, and :mod:`bittern.parallel` runs them over blocks of
queries.  So they need no threading layer of their own and may be called from any thread.
"""
