# shellcheck shell=bash
# What a folder made by fairseq-preprocess says about itself. Sourced, not run, after messages.sh.

# need_bin BIN: stops unless fairseq-preprocess has made it.
need_bin() { [ -f "$1/preprocess.log" ] || die "$1 holds no data made by fairseq-preprocess"; }

# subwords_of BIN: SUBWORDS, or bpe or spm by the subword model that the recipes leave in BIN.
subwords_of() {
  case "${SUBWORDS:-}:$(cd "$1" && ls bpe.codes spm.model 2>/dev/null)" in
    bpe:* | :bpe.codes) echo bpe ;;
    spm:* | :spm.model) echo spm ;;
    :*) die "$1 should hold one of bpe.codes and spm.model, its subword model; or set SUBWORDS to bpe or spm" ;;
    *) die "SUBWORDS '$SUBWORDS': choose bpe or spm" ;;
  esac
}
