"""The explorer: five views of a collection, or of an experiment, in the browser."""
