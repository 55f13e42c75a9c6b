"""Commands: a module has ``arguments(parser)`` and ``run(args)``, over functions of plain data."""
