#!/usr/bin/env bash
# The paper's table 4: three systems in four directions, WMT18, base models, newstest2018 with beam 10
# and the paper's length penalty. The same, also as Slurm jobs: diet-mt sweep table4; in the published
# setting of Vaswani et al. 2017: table4-vaswani; on a small machine: table4-small
#
# Makes    data/wmt18.de-en, data/wmt18.cs-en (for both directions), checkpoints/table4, results/table4
# From     statmt.org, 2 GB, or a folder with the archives: prepare wmt18 --from FOLDER
# Example  scripts/table4.sh     or     scripts/table4.sh --max-tokens-per-device 4096
# Takes    about a day on one recent GPU per training; 20 GB of disk, and 3 GB per training; if
#          interrupted, run it again
# Licence  the corpora are free for research; see statmt.org/wmt18/translation-task.html
set -euo pipefail
case " $* " in
  *" -h "* | *" --help "*) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit ;;
  *" --dry-run "*) exec diet-mt sweep table4 --dry-run ;;
esac

diet-mt prepare wmt18 de-en --subwords bpe --out data/wmt18.de-en
diet-mt prepare wmt18 cs-en --subwords bpe --out data/wmt18.cs-en

for direction in en-de de-en en-cs cs-en; do
  case $direction in *de*) data=data/wmt18.de-en ;; *) data=data/wmt18.cs-en ;; esac
  for system in sinusoidal shaw diet_rel; do
    folder=checkpoints/table4/$direction/$system.1
    diet-mt train "$data/bin" "${system}_base" --recipe table4 --seed 1 \
      --source-lang "${direction%-*}" --target-lang "${direction#*-}" --save-dir "$folder" "$@"
    diet-mt evaluate "$data/bin" "$folder" --beam 10 --lenpen 0.6 --length-penalty gnmt \
      --test-set-name newstest2018 --results results/table4
  done
done

diet-mt compare results/table4/*.jsonl
diet-mt leaderboard results/table4/*.jsonl --test-sets newstest2018
