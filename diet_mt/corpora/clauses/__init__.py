"""English sentences and their German translations, made from one plan by two grammars.

``lexicon`` holds the words, ``plan`` what a sentence says, ``english`` and ``german`` how each
language says it, ``sample`` draws plans.
"""
