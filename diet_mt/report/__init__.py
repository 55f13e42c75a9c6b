"""Reports: tables, pictures and a page of results.

``sections`` ranks the systems of comparable rows; ``boards``, ``tasks`` and ``lengths`` make
tables, which ``blocks`` formats as text, Markdown and HTML; ``style`` defines the style of
pictures; ``page`` combines everything in one file. Only colours and families of encodings need
torch, and nothing needs fairseq.
"""
