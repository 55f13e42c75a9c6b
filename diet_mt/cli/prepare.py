"""The commands ``prepare``, a class for each corpus; docstrings are their help."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from ..bert.glue import TASKS, task_named
from ..bert.settings import USUAL, LabelledSettings, MlmSettings, WindowSizes
from ..bert.squad import NAMES
from ..corpora.settings import DEMO_SIZES, Limits, TextSettings
from ..system.errors import UserError
from ..system.options import Command, File, Folder, NotNegative, Positive, argument, option
from ..system.process import cores

if TYPE_CHECKING:
    from ..corpora.download import Source
    from ..system.engine import Preparation

_OF_SUBWORDS = {
    **dict.fromkeys(("--bpe-merges", "--bpe-words", "--dictionary"), "bpe"),
    **dict.fromkeys(("--spm-size", "--spm-sample", "--spm-coverage"), "spm"),
}
_WMT18 = ("en-de", "de-en", "en-cs", "cs-en")
_LARGE = {"bpe_merges": 32000, "spm_size": 32000, "dictionary": 32768, "clean": True}


def _out(default: str) -> Any:
    return option(f"output folder (default {default})", None, metavar="FOLDER")


def _source(help: str, *default: None) -> Any:
    return option(help, *default, flag="--from", metavar="FOLDER")


def _pair(*pairs: str) -> Any:
    return argument(", ".join(pairs), "en-de", nargs="?", choices=pairs, metavar="PAIR")


@dataclass(frozen=True, kw_only=True)
class Prepare(Command):
    """Options common to all corpora."""

    out: Folder | None = None
    workers: Positive = option(
        "number of processes; results do not depend on it (default: one per core)", 1, usual=cores
    )
    dry_run: bool = option("only list the stages", False)

    def preparations(self) -> Iterator[Preparation]:
        """The preparations to carry out."""
        raise NotImplementedError

    def run(self) -> None:
        from ..system.engine import plan, prepare

        for preparation in list(self.preparations()):
            if self.dry_run:
                print("\n".join(plan(preparation)))
            else:
                prepare(preparation)


@dataclass(frozen=True, kw_only=True)
class Corpus(Prepare):
    """Options common to all parallel corpora."""

    corpus: ClassVar[str] = ""
    pair: str = "en-de"
    out: Folder | None = _out("data/CORPUS.PAIR, with SentencePiece data/CORPUS.PAIR.spm")
    text: TextSettings
    limits: Limits
    clean: bool = option("drop training pairs outside the limits below", False, negatable=True)

    def settings(self) -> TextSettings:
        """The settings of the text. Raises UserError for options of other subwords."""
        for word in self.words:
            name, chosen = word.partition("=")[0], self.text.subwords
            kind = _OF_SUBWORDS.get(name, chosen)
            if kind != chosen:
                raise UserError(f"{name}: requires --subwords {kind}, not {chosen}")
        source, _, target = self.pair.partition("-")
        langs = (source, target)
        limits = replace(self.limits, langs=langs) if self.clean else None
        return replace(self.text, pair=langs, clean=limits, workers=self.workers)

    def to(self) -> Path:
        """``--out``, or the default folder."""
        suffix = "" if self.text.subwords == "bpe" else f".{self.text.subwords}"
        return self.out or Path("data") / f"{self.corpus}.{self.pair}{suffix}"


@dataclass(frozen=True, kw_only=True)
class Download(Corpus):
    """Options common to downloaded corpora."""

    folder: Path | None = _source("folder of the files (default: download)", None)
    manifest: File | None = option(
        "YAML file with URLs and checksums, in the form of the package's corpora.yaml", None
    )
    tries: Positive = option("attempts per download", 5)
    pause: NotNegative = option("seconds before the second attempt; doubled after each", 5.0)

    def source(self) -> Source:
        """The files of the corpus."""
        from ..corpora.download import Source

        return Source(self.corpus, self.folder, self.manifest, self.tries, self.pause)


@dataclass(frozen=True, kw_only=True)
class Multi30k(Download):
    """Prepares Multi30k, image captions in English, German and Czech, for translation.

        diet-mt prepare multi30k                             English to German, downloaded
        diet-mt prepare multi30k cs-en --from FOLDER         from train.cs, val.cs.gz, ...
        diet-mt prepare multi30k --join 4                    adds test2 to test4, joined captions

    Writes raw (the original sentences), tok, bpe.codes, bpe, and bin, the data for fairseq-train.
    The test set is test_2016_flickr. Takes half a minute and 30 MB. Licence: not stated; the
    captions derive from Flickr30k, for research use.
    """

    corpus = "multi30k"
    pair: str = _pair("en-de", "de-en", "en-cs", "cs-en", "de-cs", "cs-de")
    join: Positive = option("add test sets raw/test2 to raw/testN of 2 to N captions per line", 1)
    join_training: bool = option("also join 1 to N captions in turn in train and valid", False)

    def preparations(self) -> Iterator[Preparation]:
        from ..corpora.recipes import multi30k

        if self.join_training and self.join == 1:
            raise UserError("--join-training: requires --join N")
        given = self.to(), self.settings(), self.source()
        yield multi30k(*given, self.join, in_training=self.join_training)


@dataclass(frozen=True, kw_only=True)
class Office(Download):
    """Prepares LibreOffice's help and interface texts, English with German or Czech.

        diet-mt prepare office en-de                         downloads the archive, 200 MB
        diet-mt prepare office en-cs --from FOLDER           the archive, or en-cs.train.en.gz, ...

    35,983 sentence pairs for en-de and 36,229 for en-cs, without duplicates. Each block of 60
    consecutive messages belongs to one split. Takes two minutes and 100 MB. Licence: MPL 2.0.
    """

    corpus = "office"
    pair: str = _pair("en-de", "de-en", "en-cs", "cs-en")

    def preparations(self) -> Iterator[Preparation]:
        from ..corpora.archives import office

        yield office(self.to(), self.settings(), self.source())


@dataclass(frozen=True, kw_only=True)
class Wmt18(Download):
    """Prepares WMT18 news, German or Czech with English, as in Table 4 of the paper.

        diet-mt prepare wmt18 en-de
        diet-mt prepare wmt18 cs-en --subwords spm --from archives

    Training: Europarl v7, Common Crawl and News Commentary v13, cleaned (counts in clean.tsv).
    Validation: newstest2017. Test: newstest2018 (with --from, SacreBLEU's archive as test.tgz). The
    data serve both directions; PAIR in --out is de-en or cs-en. German takes 1.7 GB of downloads,
    10 GB of disk, 4 GB of memory and, once downloaded, an estimated hour on two cores; Czech takes
    a quarter of that. Licence: free for research, see statmt.org/wmt18/translation-task.html.
    """

    corpus, defaults = "wmt18", _LARGE  # dictionary size as in fairseq's WMT recipes
    pair: str = argument(", ".join(_WMT18), choices=_WMT18, metavar="DIRECTION")
    downloads: Folder = option("folder for downloads of both pairs", Path("data/wmt18.archives"))

    def preparations(self) -> Iterator[Preparation]:
        from ..corpora.archives import wmt18

        own = replace(self, pair="-".join(sorted(self.pair.split("-"))))  # as in the archives
        yield wmt18(own.to(), own.settings(), own.source(), self.downloads)


@dataclass(frozen=True, kw_only=True)
class Newstest(Corpus):
    """Prepares a small news corpus from ten years of WMT's news test sets.

        diet-mt prepare newstest en-de --from news           newstest2008.en-de.en, or .en.gz, ...
        diet-mt prepare newstest en-cs                       downloaded by SacreBLEU

    Training: 2008 to 2015, and 2016 if it is not the test year. Validation: 2017. Test: 2016.
    Training pairs are cleaned. Takes a minute and 60 MB. Licence: free for research.
    """

    defaults: ClassVar[dict[str, Any]] = {"clean": True}
    corpus = "newstest"
    pair: str = _pair("en-de", "en-cs")
    folder: Path | None = _source(
        "folder of newstestYYYY.PAIR.LANGUAGE, plain or .gz (default: SacreBLEU)", None
    )
    train_years: str = option(
        "training years: 2008-2013,2015 (default 2008-2015, and 2016 if not the test year)",
        "",
        metavar="YEARS",
    )
    valid_year: str = option("validation year", "2017", metavar="YEAR")
    test_year: str = option("test year", "2016", metavar="YEAR")

    def preparations(self) -> Iterator[Preparation]:
        from ..corpora.recipes import newstest

        train = self.train_years or ("2008-2015" if self.test_year == "2016" else "2008-2016")
        years = {"train": train, "valid": self.valid_year, "test": self.test_year}
        yield newstest(self.to(), self.settings(), self.folder, years)


@dataclass(frozen=True, kw_only=True)
class Mixed(Corpus):
    """Prepares captions, news and LibreOffice's texts as one corpus with one vocabulary.

        diet-mt prepare mixed en-de --from FOLDER            from FOLDER/multi30k, news and office
        diet-mt prepare mixed en-cs                          all downloaded

    81,000 cleaned training pairs and 8,900 test pairs; raw/captions, raw/news and raw/office are
    the parts of the test set. News: training 2008 to 2014, validation 2015, test 2016 and 2017.
    Takes three minutes and 200 MB. Licence: those of the three corpora; for research.
    """

    defaults: ClassVar[dict[str, Any]] = {"bpe_merges": 8000, "spm_size": 8000, "clean": True}
    corpus = "mixed"
    pair: str = _pair("en-de", "en-cs")
    folder: Path | None = _source("folder of multi30k, news and office (default: download)", None)

    def preparations(self) -> Iterator[Preparation]:
        from ..corpora.recipes import mixed

        yield mixed(self.to(), self.settings(), self.folder)


def _languages(text: str) -> str:
    match = re.fullmatch(r"(\w+)-(\w+)", text)
    if not match or match[1] == match[2]:
        raise argparse.ArgumentTypeError(f"{text}: expected SOURCE-TARGET, such as de-pt_BR")
    return text


@dataclass(frozen=True, kw_only=True)
class Bitext(Corpus):
    """Prepares your own parallel text, in any two languages.

        diet-mt prepare bitext de-fr --from FOLDER        train.de, train.fr, valid.de, ..., test.fr
        diet-mt prepare bitext ja-en --from FOLDER --subwords spm --ratio 5

    The files of a split are aligned by line, plain or .gz. The training pairs are cleaned (counts
    in clean.tsv). In valid and test, empty or invalid lines are an error, and the sources are
    normalized like the training text, but not the references. Changes to the files in FOLDER are
    not detected: remove the output after changing them. For less than a million pairs, use fewer
    subwords, such as --bpe-merges 8000 or --spm-size 8000.

    Languages written without spaces require --subwords spm and, paired with other languages, a
    larger --ratio; for such targets, use chrF rather than BLEU, which counts words. Languages that
    py3langid does not support, such as nb, require --certainty 2.

    Writes raw, clean, tok, bpe.codes, bpe, and bin, the data for fairseq-train. A million pairs
    take an estimated ten minutes on two cores. Licence: that of your text.
    """

    corpus, defaults = "bitext", _LARGE
    pair: Annotated[str, _languages] = argument(
        "source and target language, the suffixes of the files: de-fr", metavar="PAIR"
    )
    folder: Path = _source("folder of the files SPLIT.LANGUAGE: train, valid and test")

    def preparations(self) -> Iterator[Preparation]:
        from ..corpora.recipes import bitext

        yield bitext(self.to(), self.settings(), self.folder)


@dataclass(frozen=True, kw_only=True)
class Demo(Corpus):
    """Prepares the demo corpus, synthetic English-German text in which word order matters.

        diet-mt prepare demo
        diet-mt prepare demo --train-pairs 5000 --out data/demo5k

    Downloads nothing. Takes a few seconds and 20 MB. Licence: that of this project.
    """

    defaults: ClassVar[dict[str, Any]] = {"bpe_merges": 1500, "spm_size": 1500}
    corpus = "demo"
    train_pairs: Positive = option("training pairs, at most", DEMO_SIZES["train"])
    valid_pairs: Positive = option("validation pairs, at most", DEMO_SIZES["valid"])
    test_pairs: Positive = option("test pairs, at most", DEMO_SIZES["test"])

    def preparations(self) -> Iterator[Preparation]:
        from ..corpora.recipes import demo

        sizes = {split: getattr(self, f"{split}_pairs") for split in DEMO_SIZES}
        yield demo(self.to(), self.settings(), sizes)


@dataclass(frozen=True, kw_only=True)
class Mlm(Prepare):
    """Prepares plain text for a masked language model (diet-mt pretrain).

        diet-mt prepare mlm --train wiki.txt.gz books/*.gz --valid held-out.txt --out data/mlm.en
        diet-mt prepare mlm --setting multilingual --train de:de.gz cs:cs.gz --valid de:de.v cs:cs.v

    The text has one paragraph per line and an empty line between documents, plain or .gz. Changes
    to the files are not detected: remove the output after changing them. Writes sentences, sample,
    wordpiece.json or spm.model, pieces, and bin, the data for fairseq-train and the --vocab of
    glue, xnli and qa. The paper does not state whether its English model is cased.

    1.5 million words take 20 s of CPU time and 35 MB; the 3,300 million of English Wikipedia and
    books take an estimated 12 hours on one core, or one hour on sixteen, and 70 GB. Licence: that
    of your text.
    """

    train: Sequence[str] = option("training text, files or patterns", metavar="[LANGUAGE:]FILE")
    valid: Sequence[str] = option("validation text", metavar="[LANGUAGE:]FILE")
    out: Folder | None = _out("data/mlm")
    setting: str = option(
        "english: WordPiece of 30,000, sequences of 128; multilingual: SentencePiece of 120,000, "
        "sequences of 512, as in Chen et al. 2021",
        "english",
        choices=tuple(USUAL),
    )
    settings: MlmSettings

    def preparations(self) -> Iterator[Preparation]:
        from ..bert.mlm import preparation

        usual = dict(
            zip(("subwords", "vocab_size", "max_length"), USUAL[self.setting], strict=True)
        )
        chosen: dict[str, Any] = {
            name: getattr(self.settings, name) or value for name, value in usual.items()
        }
        settings = replace(self.settings, workers=self.workers, **chosen)
        yield preparation(self.out or Path("data/mlm"), self.train, self.valid, settings)


@dataclass(frozen=True, kw_only=True)
class Glue(Prepare):
    """Prepares one GLUE task, or all of them, with the subwords of a pretrained model.

        diet-mt prepare glue CoLA --from glue --vocab data/mlm.en/bin
        diet-mt prepare glue all --from glue --vocab data/mlm.en/bin --out data/glue

    Reads the official files, TASK/*.tsv, plain or .gz, from gluebenchmark.com. Writes raw, pieces,
    input0, input1 and label for the splits train, valid and test; MNLI's mismatched sets are valid1
    and test1. Test sets are published without labels. A task takes seconds, MNLI some minutes; all
    tasks take 2 GB. Licence: each task's own; most are for research only.
    """

    task: str = argument(f"{', '.join(TASKS)}, or all", choices=(*TASKS, "all"), metavar="TASK")
    out: Folder | None = _out("data/glue/TASK; with all: data/glue")
    folder: Path = _source("folder of the official files, with TASK/train.tsv")
    settings: LabelledSettings

    def preparations(self) -> Iterator[Preparation]:
        from ..bert.labelled_stages import preparation_of_glue

        settings = replace(self.settings, workers=self.workers)
        above = self.out or Path("data/glue")
        for name in TASKS if self.task == "all" else [self.task]:
            out = above if self.out and self.task != "all" else above / name
            yield preparation_of_glue(out, task_named(name), self.folder, settings)


@dataclass(frozen=True, kw_only=True)
class Xnli(Prepare):
    """Prepares XNLI for zero-shot transfer, with the subwords of a multilingual model.

        diet-mt prepare xnli --from xnli --mnli glue --vocab data/mlm.multi/bin

    Reads MNLI/train.tsv of GLUE, and *.dev.tsv and *.test.tsv, plain or .gz: the official files
    with 19 columns, and further languages in the same format. Writes raw, pieces, input0, input1
    and label for the splits train (MNLI, English), valid_LANGUAGE and test_LANGUAGE, with the label
    numbers of MNLI. Takes some minutes and 1.5 GB. Licence: CC BY-NC 4.0 (XNLI), OANC and others
    (MNLI).
    """

    # As in pretraining (Chen et al. 2021, table 7).
    defaults: ClassVar[dict[str, Any]] = {"max_length": 512}
    folder: Path = _source("folder of XNLI's files, with xnli.dev.tsv")
    mnli: Folder = option("folder of GLUE's files, with MNLI/train.tsv")
    out: Folder | None = _out("data/XNLI")
    settings: LabelledSettings

    def preparations(self) -> Iterator[Preparation]:
        from ..bert.labelled_stages import preparation_of_xnli

        settings = replace(self.settings, workers=self.workers)
        yield preparation_of_xnli(self.out or Path("data/XNLI"), self.folder, self.mnli, settings)


@dataclass(frozen=True, kw_only=True)
class Qa(Prepare):
    """Prepares questions and contexts as windows of the subwords of a pretrained model.

        diet-mt prepare qa --train train-v1.1.json --valid dev-v1.1.json --vocab data/mlm.en/bin
        diet-mt prepare qa --train train-v1.1.json --valid dev-v1.1.json --xquad xquad \\
            --mlqa mlqa --tydiqa tydiqa --vocab data/mlm.multi/bin

    Reads SQuAD's JSON, plain or .gz (rajpurkar.github.io/SQuAD-explorer), and folders of official
    test sets: XQuAD (xquad.de.json), MLQA (test-context-de-question-de.json) and TyDi QA's gold
    passage task (tydiqa.fi.dev.json, finnish.dev.json or tydiqa-goldp-dev-finnish.json). Writes
    train, valid and test_COLLECTION_LANGUAGE; test sets can be added later. SQuAD takes a minute
    and 600 MB, each test set some seconds. Licence: CC BY-SA 4.0 (SQuAD, XQuAD), CC BY-SA 3.0
    (MLQA), Apache 2.0 (TyDi QA).

    --max-tokens defaults to the multilingual setting of Chen et al. (2021, table 7); the paper does
    not list the other sizes, which default to those of BERT's published code.
    """

    train: File = option("training questions")
    valid: File = option("validation questions")
    xquad: Folder | None = option("folder of XQuAD's test sets", None)
    mlqa: Folder | None = option("folder of MLQA's test sets", None)
    tydiqa: Folder | None = option("folder of TyDi QA's files", None)
    vocab: Folder = option("bin folder made by diet-mt prepare mlm")
    out: Folder | None = _out("data/SQuAD")
    language: str = option("language of --train and --valid", "en", metavar="CODE")
    sizes: WindowSizes

    def preparations(self) -> Iterator[Preparation]:
        from ..bert.qa import preparation

        folders = {name: folder for name in NAMES if (folder := getattr(self, name))}
        yield preparation(
            *(self.out or Path("data/SQuAD"), self.train, self.valid, folders, self.vocab),
            language=self.language,
            sizes=self.sizes,
        )
