#!/usr/bin/env bash
# WMT18 news translation, German with English: the training data of the paper's Table 4.
#
# Makes    data/wmt18.de-en/archives  where the archives are; extracted: their files of this pair
#          raw                        training text; newstest2017 as valid; newstest2018 as test, untouched
#          clean, tok, bpe.codes, bpe training pairs cleaned (counts in clean.tsv), then in subwords
#          bin                        what fairseq reads, for both directions, with the subword model
# From     Europarl v7, Common Crawl, News Commentary v13 and the development sets, and newstest2018 from
#          SacreBLEU: downloaded to data/wmt18.archives, or from a folder
# Example  data-prep/prepare-wmt18.sh
#          data-prep/prepare-wmt18.sh --from archives        no network; SacreBLEU's archive as test.tgz
# Takes    1.7 GB of downloads, 10 GB of disk, 4 GB of memory; an estimated hour on two cores after the
#          downloads (from what a million made-up pairs take); cs-en a quarter of it
# Licence  of the corpora: free for research; see statmt.org/wmt18/translation-task.html
#
# Czech: cs-en in the place of de-en. SentencePiece: --subwords spm. All options: diet-mt prepare wmt18 --help
set -euo pipefail
case " $* " in *" -h "* | *" --help "*) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit ;; esac

diet-mt prepare wmt18 de-en \
  --out data/wmt18.de-en --downloads data/wmt18.archives \
  --max-words 250 --max-chars 2000 --ratio 2.0 --language-chars 40 --certainty 0.9 \
  --subwords bpe --bpe-merges 32000 --dictionary 32768 \
  "$@"
