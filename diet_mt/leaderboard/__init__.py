"""The leaderboard: results side by side with the paper's, as text, Markdown or a page.

From rows to what is shown: ``groups`` (what may be compared), ``comparisons`` (p-values) and
``published`` (the paper's figures) meet in ``standings``; ``tables`` makes columns of them,
``findings`` sentences, ``picture`` and ``charts`` marks and lines. ``boards``, ``page`` and ``svg``
show these. What lies beside the rows (speeds, curves, counts of sentences) is read by
``beside`` and ``heat``, drawn by ``views``, and handed to the page's scripts by ``pairs``.
``by_length`` and ``by_length_picture`` are by themselves: by length, place and frequency of words.
Knows neither torch nor fairseq.
"""
