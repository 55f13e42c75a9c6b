#!/usr/bin/env bash
# Two systems of the paper's table 4, English to German: WMT18, base models, newstest2018 with beam 10
# and the paper's length penalty. One line for all twelve trainings: diet-mt sweep table4; the setting
# of Vaswani et al. 2017 as printed: table4-vaswani; the same way on a small machine: table4-small
#
# Makes    data/wmt18.de-en (for both directions), checkpoints/table4/en-de, rows of results
# From     statmt.org, 1.7 GB; a folder with the archives: prepare wmt18 --from FOLDER
# Example  scripts/table4.sh     or     scripts/table4.sh --max-tokens-per-device 4096
# Takes    about a day on one recent GPU for each training; 10 GB and 3 GB a training; run again, it
#          continues
# Licence  of the corpora: free for research; see statmt.org/wmt18/translation-task.html
set -euo pipefail
case " $* " in
  *" -h "* | *" --help "*) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit ;;
  *" --dry-run "*) exec diet-mt sweep table4 --dry-run ;;
esac

diet-mt prepare wmt18 de-en --subwords bpe --out data/wmt18.de-en

diet-mt train data/wmt18.de-en/bin sinusoidal_base --recipe table4 --seed 1 \
  --source-lang en --target-lang de --save-dir checkpoints/table4/en-de/sinusoidal.1 "$@"
diet-mt train data/wmt18.de-en/bin diet_rel_base --recipe table4 --seed 1 \
  --source-lang en --target-lang de --save-dir checkpoints/table4/en-de/diet_rel.1 "$@"

diet-mt evaluate data/wmt18.de-en/bin checkpoints/table4/en-de/sinusoidal.1 \
  --beam 10 --lenpen 0.6 --length-penalty gnmt --test-set-name newstest2018 --results results
diet-mt evaluate data/wmt18.de-en/bin checkpoints/table4/en-de/diet_rel.1 \
  --beam 10 --lenpen 0.6 --length-penalty gnmt --test-set-name newstest2018 --results results

diet-mt compare results/wmt18.de-en.jsonl
diet-mt leaderboard results/wmt18.de-en.jsonl --test-sets newstest2018
