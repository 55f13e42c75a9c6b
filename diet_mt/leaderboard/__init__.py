"""The leaderboard: results side by side with the paper's, as text, Markdown or a page.

From rows to what is shown: ``groups`` (what may be compared), ``significance`` (p-values) and
``published`` (the paper's figures) meet in ``standings``; ``tables`` makes columns of them, and
``text``, ``markdown``, ``picture`` and ``page`` draw these. Knows neither torch nor fairseq.
"""
