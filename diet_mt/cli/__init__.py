"""Commands: each module has a ``main(argv)`` over functions of plain data."""
