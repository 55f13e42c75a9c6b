"""Reports: tables, pictures and the page made from rows of results.

``sections`` ranks the systems of comparable rows; ``boards``, ``tasks`` and ``lengths`` make tables
of them, ``blocks`` writes these as text, Markdown and HTML. ``style`` draws with matplotlib,
``page`` puts everything into one file. Needs neither torch nor fairseq.
"""
