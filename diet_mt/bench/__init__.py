"""What a measurement runs in a process of its own, with the plugin or without it.

Nothing here imports the rest of the package: stock fairseq is measured as its users have it, and
importing ``diet_mt`` alone changes fairseq. ``python diet_mt/bench/__main__.py`` runs a worker by
the path of that file, so that ``diet_mt/__init__.py`` is not run.
"""
