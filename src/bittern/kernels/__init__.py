"""The only compiled code: arrays in, arrays out.

Kernels release the interpreter's lock and are run by :mod:`bittern.parallel` over blocks of
queries, so they need no threading layer of their own and may be called from any thread.
"""
