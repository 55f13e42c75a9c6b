"""What a measurement runs in a process of its own, with the plugin or without it.

Nothing here imports the rest of the package: stock fairseq is measured as its users have it.
``python diet_mt/bench/process/__main__.py`` runs a worker by the path of that file, so that fairseq
finds no ``diet_mt`` imported when it is given that as --user-dir, and takes it in as it does
elsewhere.
"""
