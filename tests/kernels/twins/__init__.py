"""NumPy twins of the kernels: slow and short, the specification that kernels must meet."""
