"""The search service and the explorer: one web application over one collection."""
