"""Reports: tables, pictures and the page made from rows of results.

``sections`` ranks the systems of comparable rows, ``boards`` and ``tasks`` turn them into tables,
``blocks`` writes these as text, Markdown and HTML. ``pictures`` and ``curves`` draw with
matplotlib, ``page`` puts everything into one file. Needs neither torch nor fairseq.
"""
