"""``diet-mt prepare``: a class for each corpus, whose docstring is the help."""

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
_LARGE = {"bpe_merges": 32000, "spm_size": 32000, "dictionary": 32768, "clean": True}


def _out(default: str) -> Any:
    return option(f"folder to make (default {default})", None, metavar="FOLDER")


def _source(help: str, *default: None) -> Any:
    return option(help, *default, flag="--from", metavar="FOLDER")


def _pair(*pairs: str) -> Any:
    return argument(f"{', '.join(pairs)}", "en-de", nargs="?", choices=pairs, metavar="PAIR")


@dataclass(frozen=True, kw_only=True)
class Prepare(Command):
    """Options of all preparations."""

    out: Folder | None = None
    workers: Positive = option(
        "processes; the result is the same for any number (default one for each core)",
        1,
        usual=cores,
    )
    dry_run: bool = option("list the stages, and do nothing", False)
    words: Sequence[str] = ()

    def preparations(self) -> Iterator[Preparation]:
        """What to make."""
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
    """Options of all parallel corpora."""

    pair: str = "en-de"
    text: TextSettings
    limits: Limits
    clean: bool = option("drop training pairs beyond the limits", False, negatable=True)

    def settings(self) -> TextSettings:
        """The settings of the text; UserError for an option of the other kind of subwords."""
        for word in self.words:
            name, chosen = word.partition("=")[0], self.text.subwords
            kind = _OF_SUBWORDS.get(name, chosen)
            if kind != chosen:
                raise UserError(f"{name}: of --subwords {kind}, not {chosen}; leave it out")
        source, _, target = self.pair.partition("-")
        langs = (source, target)
        limits = replace(self.limits, langs=langs) if self.clean else None
        return replace(self.text, pair=langs, clean=limits, workers=self.workers)

    def folder_of(self, corpus: str) -> Path:
        """--out, or the default folder of a corpus."""
        suffix = "" if self.text.subwords == "bpe" else f".{self.text.subwords}"
        return self.out or Path("data") / f"{corpus}.{self.pair}{suffix}"


@dataclass(frozen=True, kw_only=True)
class Download(Corpus):
    """Options of corpora that are downloaded."""

    folder: Path | None = _source("folder of the files, no network (default: download)", None)
    manifest: File | None = option(
        "URLs and checksums of other copies, as corpora.yaml of the package", None
    )
    tries: Positive = option("attempts at a download", 5)
    pause: NotNegative = option("seconds before the second attempt; doubled each time", 5.0)

    def source(self, corpus: str) -> Source:
        """The files of a corpus."""
        from ..corpora.download import Source

        return Source(corpus, self.folder, self.manifest, self.tries, self.pause)


@dataclass(frozen=True, kw_only=True)
class Multi30k(Download):
    """Multi30k (image captions) for translation, any pair of English, German and Czech.

        diet-mt prepare multi30k                             English to German, downloaded
        diet-mt prepare multi30k cs-en --from FOLDER         from train.cs, val.cs.gz, ...
        diet-mt prepare multi30k --join 4                    raw/test2 to test4: so many in a line

    Makes raw (the untouched sentences), tok, bpe.codes, bpe, and bin, what fairseq-train reads.
    Takes half a minute and 30 MB. The test set is test_2016_flickr. Licence: the source carries
    none; the captions derive from Flickr30k, for research use.
    """

    pair: str = _pair("en-de", "de-en", "en-cs", "cs-en", "de-cs", "cs-de")
    out: Folder | None = _out("data/multi30k.PAIR")
    join: Positive = option(
        "further test sets, raw/test2 to testN, of so many captions in a line", 1
    )
    join_training: bool = option("train and valid have 1 to N captions in a line in turn", False)

    def preparations(self) -> Iterator[Preparation]:
        from ..corpora.recipes import multi30k

        if self.join_training and self.join == 1:
            raise UserError("--join-training: also give --join N")
        out, source = self.folder_of("multi30k"), self.source("multi30k")
        yield multi30k(out, self.settings(), source, self.join, in_training=self.join_training)


@dataclass(frozen=True, kw_only=True)
class Office(Download):
    """LibreOffice's help and interface: prose with long sentences, English with German or Czech.

        diet-mt prepare office en-de                         the archive of translations, 200 MB
        diet-mt prepare office en-cs --from FOLDER           that archive, or en-cs.train.en.gz, ...

    35,983 pairs en-de and 36,229 en-cs, each message once, split by pieces of 60 consecutive
    messages of a file. Takes two minutes and 100 MB. Licence: MPL 2.0.
    """

    pair: str = _pair("en-de", "de-en", "en-cs", "cs-en")
    out: Folder | None = _out("data/office.PAIR")

    def preparations(self) -> Iterator[Preparation]:
        from ..corpora.archives import office

        yield office(self.folder_of("office"), self.settings(), self.source("office"))


@dataclass(frozen=True, kw_only=True)
class Wmt18(Download):
    """WMT18 news, German or Czech with English: the training data of Table 4 of the paper.

        diet-mt prepare wmt18 de-en
        diet-mt prepare wmt18 cs-en --subwords spm --from archives

    Europarl v7, Common Crawl and News Commentary v13, cleaned (counts in clean.tsv), to train on;
    newstest2017 to validate; newstest2018 to test (with --from, SacreBLEU's archive as test.tgz).
    One preparation serves both directions. de-en takes 1.7 GB of downloads, 10 GB of disk, 4 GB of
    memory and an estimated hour on two cores after the downloads, extrapolated from a million
    synthetic pairs; cs-en a quarter of it. Licence: free for research, see
    statmt.org/wmt18/translation-task.html.
    """

    defaults = _LARGE  # the dictionary as in fairseq's WMT recipes
    pair: str = argument("de-en or cs-en", choices=("de-en", "cs-en"), metavar="PAIR")
    out: Folder | None = _out("data/wmt18.PAIR, data/wmt18.PAIR.spm")
    downloads: Folder = option("folder of the downloads of both pairs", Path("data/wmt18.archives"))

    def preparations(self) -> Iterator[Preparation]:
        from ..corpora.archives import wmt18

        out, source = self.folder_of("wmt18"), self.source("wmt18")
        yield wmt18(out, self.settings(), source, self.downloads)


@dataclass(frozen=True, kw_only=True)
class Newstest(Corpus):
    """Ten years of WMT's news test sets: a small corpus of real news, for a small machine.

        diet-mt prepare newstest en-de --from news           newstest2008.en-de.en, or .en.gz, ...
        diet-mt prepare newstest en-cs                       all from SacreBLEU

    2008 to 2015 to train on, 2017 to validate, 2016 to test; with --test-year 2018, also 2016 to
    train on. The training pairs are cleaned. Takes a minute and 60 MB. Licence: free for research.
    """

    defaults: ClassVar = {"clean": True}
    pair: str = _pair("en-de", "en-cs")
    out: Folder | None = _out("data/newstest.PAIR")
    folder: Path | None = _source(
        "folder of newstestYYYY.PAIR.LANGUAGE, plain or .gz (default: SacreBLEU)", None
    )
    train_years: str = option(
        "such as 2008-2013,2015 (default 2008-2015; 2008-2016 unless that is the test year)",
        "",
        metavar="YEARS",
    )
    valid_year: str = option("year to validate on", "2017", metavar="YEAR")
    test_year: str = option("year to test on", "2016", metavar="YEAR")

    def preparations(self) -> Iterator[Preparation]:
        from ..corpora.recipes import newstest

        train = self.train_years or ("2008-2015" if self.test_year == "2016" else "2008-2016")
        years = {"train": train, "valid": self.valid_year, "test": self.test_year}
        yield newstest(self.folder_of("newstest"), self.settings(), self.folder, years)


@dataclass(frozen=True, kw_only=True)
class Mixed(Corpus):
    """Captions, news and LibreOffice's texts as one corpus, with one vocabulary.

        diet-mt prepare mixed en-de --from FOLDER            of FOLDER/multi30k, news and office
        diet-mt prepare mixed en-cs                          all downloaded

    81,000 pairs to train on, cleaned; 8,900 to test, with raw/captions, raw/news and raw/office as
    its parts. News of 2008 to 2014 to train on, 2015 to validate, 2016 and 2017 to test. Takes
    three minutes and 200 MB. Licence: that of each of the three; for research.
    """

    defaults: ClassVar = {"bpe_merges": 8000, "spm_size": 8000, "clean": True}
    pair: str = _pair("en-de", "en-cs")
    out: Folder | None = _out("data/mixed.PAIR")
    folder: Path | None = _source("folder of multi30k, news and office (default: download)", None)

    def preparations(self) -> Iterator[Preparation]:
        from ..corpora.recipes import mixed

        yield mixed(self.folder_of("mixed"), self.settings(), self.folder)


def _languages(text: str) -> str:
    match = re.fullmatch(r"(\w+)-(\w+)", text)
    if not match or match[1] == match[2]:
        raise argparse.ArgumentTypeError(
            f"{text}: give two languages as SOURCE-TARGET, without further hyphens, as in de-pt_BR"
        )
    return text


@dataclass(frozen=True, kw_only=True)
class Bitext(Corpus):
    """Parallel text of your own, any two languages.

        diet-mt prepare bitext de-fr --from FOLDER        train.de, train.fr, valid.de, ..., test.fr
        diet-mt prepare bitext ja-en --from FOLDER --subwords spm --ratio 5

    Line n of a file translates line n of the other; plain or .gz. The training pairs are cleaned
    (counts in clean.tsv); no line of the other files may be empty or invalid. FOLDER is identified
    by its name: after a change of its files, remove the output. Source lines of valid and test are
    normalized like those of training, references are not. For less than a million pairs choose
    fewer subwords, such as --bpe-merges 8000 or --spm-size 8000.

    Languages written without spaces need --subwords spm and, paired with others, a larger --ratio;
    as targets, read chrF rather than BLEU, which counts words. Languages that py3langid does not
    know, such as nb, need --certainty 2.

    Makes raw, clean, tok, bpe.codes, bpe, and bin, what fairseq-train reads. Takes an estimated ten
    minutes on two cores for each million pairs. Licence: that of the text.
    """

    defaults = _LARGE
    pair: Annotated[str, _languages] = argument(
        "source and target, the suffixes of the files: de-fr", metavar="PAIR"
    )
    out: Folder | None = _out("data/bitext.PAIR, data/bitext.PAIR.spm")
    folder: Path = _source("folder of SPLIT.LANGUAGE: train, valid and test")

    def preparations(self) -> Iterator[Preparation]:
        from ..corpora.recipes import bitext

        yield bitext(self.folder_of("bitext"), self.settings(), self.folder)


@dataclass(frozen=True, kw_only=True)
class Demo(Corpus):
    """The demo corpus: generated English-German sentences in which word order carries the meaning.

        diet-mt prepare demo
        diet-mt prepare demo --train-pairs 5000 --out data/demo5k

    Nothing is downloaded. Takes a few seconds and 20 MB. Licence: as this project.
    """

    defaults: ClassVar = {"bpe_merges": 1500, "spm_size": 1500}
    out: Folder | None = _out("data/demo.en-de")
    train_pairs: Positive = option("training pairs, at most", DEMO_SIZES["train"])
    valid_pairs: Positive = option("validation pairs, at most", DEMO_SIZES["valid"])
    test_pairs: Positive = option("test pairs, at most", DEMO_SIZES["test"])

    def preparations(self) -> Iterator[Preparation]:
        from ..corpora.recipes import demo

        sizes = {split: getattr(self, f"{split}_pairs") for split in DEMO_SIZES}
        yield demo(self.folder_of("demo"), self.settings(), sizes)


@dataclass(frozen=True, kw_only=True)
class Mlm(Prepare):
    """Plain text as the corpus of a masked language model, for diet-mt pretrain.

        diet-mt prepare mlm --train wiki.txt.gz books/*.gz --valid held-out.txt --out data/mlm.en
        diet-mt prepare mlm --setting multilingual --train de:de.gz cs:cs.gz --valid de:de.v cs:cs.v

    Text: plain or .gz, a paragraph on a line, an empty line between documents. Files are identified
    by their names: after a change of one, remove the folder. Makes sentences, sample,
    wordpiece.json or spm.model, pieces, and bin, what fairseq-train reads and what glue, xnli and
    qa take as --vocab. The paper does not say whether its English model was cased.

    1.5 million words take 20 s of processor time and 35 MB; the 3,300 million of English Wikipedia
    and books an estimated 12 hours of one core, or one of sixteen, and 70 GB. Licence: that of the
    text.
    """

    train: Sequence[str] = option("training text; patterns, too", metavar="[LANGUAGE:]FILE")
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
    """One task of GLUE, or all of them, as subwords of a pretrained model and in fairseq's form.

        diet-mt prepare glue CoLA --from glue --vocab data/mlm.en/bin
        diet-mt prepare glue all --from glue --vocab data/mlm.en/bin --out data/glue

    Reads the official files, TASK/*.tsv, plain or .gz, from gluebenchmark.com. Makes raw, pieces,
    input0, input1 and label: splits train, valid, test; MNLI's mismatched sets are valid1 and
    test1. Test files have no labels, as published. Takes seconds, for MNLI some minutes; 2 GB for
    all. Licence: each task's own; most are for research alone.
    """

    task: str = argument(f"{', '.join(TASKS)}, or all", choices=(*TASKS, "all"), metavar="TASK")
    out: Folder | None = _out("data/glue/TASK; with all: data/glue")
    folder: Path = _source("folder of the official files, with TASK/train.tsv")
    settings: LabelledSettings

    def preparations(self) -> Iterator[Preparation]:
        from ..bert.labelled_stages import preparation_of_glue

        settings = replace(self.settings, workers=self.workers)
        for name in TASKS if self.task == "all" else [self.task]:
            folder = self.out if self.task != "all" else None
            out = folder or (self.out or Path("data/glue")) / name
            yield preparation_of_glue(out, task_named(name), self.folder, settings)


@dataclass(frozen=True, kw_only=True)
class Xnli(Prepare):
    """XNLI for zero-shot transfer, as subwords of a multilingual model and in fairseq's form.

        diet-mt prepare xnli --from xnli --mnli glue --vocab data/mlm.multi/bin

    Reads *.dev.tsv and *.test.tsv, plain or .gz: the official files of 19 columns, and any other
    languages in the same layout; and MNLI/train.tsv of GLUE. Makes raw, pieces, input0, input1 and
    label: train (MNLI's, in English), and valid_LANGUAGE and test_LANGUAGE, labels numbered as
    MNLI's. Takes some minutes and 1.5 GB. Licence: XNLI: CC BY-NC 4.0; MNLI: OANC and others.
    """

    defaults: ClassVar = {"max_length": 512}  # as in pretraining (Chen et al. 2021, table 7)
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
    """Questions and contexts as windows of subwords of a pretrained model.

        diet-mt prepare qa --train train-v1.1.json --valid dev-v1.1.json --vocab data/mlm.en/bin
        diet-mt prepare qa --train train-v1.1.json --valid dev-v1.1.json --xquad xquad \\
            --mlqa mlqa --tydiqa tydiqa --vocab data/mlm.multi/bin

    Reads SQuAD's JSON, plain or .gz (rajpurkar.github.io/SQuAD-explorer), and folders of official
    test files: xquad.de.json; test-context-de-question-de.json; TyDi QA's gold passage, a file for
    each language (tydiqa.fi.dev.json, finnish.dev.json or tydiqa-goldp-dev-finnish.json). Makes
    train, valid and test_COLLECTION_LANGUAGE; test sets can be added later. Takes a minute and
    600 MB for SQuAD, seconds for each test set. Licence: SQuAD, XQuAD: CC BY-SA 4.0; MLQA:
    CC BY-SA 3.0; TyDi QA: Apache 2.0.

    --max-tokens is that of Chen et al. (2021, table 7, multilingual); the other sizes, not printed
    there, are those of BERT's published code.
    """

    train: File = option("questions to train on")
    valid: File = option("questions to validate on")
    xquad: Folder | None = option("test sets; can be added later", None)
    mlqa: Folder | None = option("test sets; can be added later", None)
    tydiqa: Folder | None = option("test sets; can be added later", None)
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
