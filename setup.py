"""Packaging of diet-mt: ``make setup`` makes an environment, ``pip install .`` adds to one."""

import re
import shutil
import zlib
from pathlib import Path

from setuptools import Extension, find_packages, setup
from setuptools.command.build_py import build_py

README = Path(__file__).parent / "README.md"
PACKAGE = Path(__file__).parent / "diet_mt" / "__init__.py"
# Loops of a decoding step. Not a Python module: it is loaded with ctypes, and has a checksum of
# its sources. Optional: without a C++ compiler, torch's operators do the same more slowly.
KERNELS = [Path("diet_mt/kernels", name) for name in ("cpu.cpp", "step.inc", "int8.inc")]
CHECKSUM = zlib.crc32(b"".join(Path(__file__).parent.joinpath(p).read_bytes() for p in KERNELS))
# Folders of the checkout that the installed package has as diet_mt/share/FOLDER. Commands prefer
# those of a checkout.
SHARED = ("config", "data-prep", "scripts")


class BuildWithShared(build_py):
    """Also copies what is no code."""

    def run(self) -> None:
        super().run()
        for name in () if self.editable_mode else SHARED:
            target = Path(self.build_lib, "diet_mt", "share", name)
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(name, target, ignore=shutil.ignore_patterns("__pycache__"))


setup(
    name="diet-mt",
    version=re.findall(r'^__version__ = "(.+)"$', PACKAGE.read_text(encoding="utf-8"), re.M)[0],
    description="Translation models for fairseq with position information inside attention (DIET)",
    long_description=README.read_text(encoding="utf-8") if README.exists() else "",
    long_description_content_type="text/markdown",
    author="diet-mt authors",
    project_urls={
        "Paper": "https://arxiv.org/abs/2104.08698",
        "fairseq": "https://github.com/facebookresearch/fairseq",
    },
    license="MIT",
    license_files=["LICENSE"],
    classifiers=[
        "Intended Audience :: Science/Research",
        "Programming Language :: Python :: 3 :: Only",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
        "Topic :: Text Processing :: Linguistic",
    ],
    python_requires=">=3.10",
    packages=find_packages(include=["diet_mt", "diet_mt.*"]),
    ext_modules=[
        Extension(
            "diet_mt.kernels._cpu",
            [str(KERNELS[0])],
            depends=[str(path) for path in KERNELS],
            define_macros=[("SOURCES", str(CHECKSUM))],
            # Products and sums may be one instruction.
            extra_compile_args=["-O3", "-std=c++17", "-ffp-contract=fast", "-Wno-psabi"],
            language="c++",
            optional=True,
        )
    ],
    # Data files of any package, and sources of the kernels.
    package_data={
        "": ["*.cpp", "*.css", "*.html", "*.inc", "*.js", "*.json", "*.yaml"],
        "diet_mt.corpora": ["demo_corpus/*.bz2"],
        "diet_mt": ["py.typed"],
    },
    cmdclass={"build_py": BuildWithShared},
    zip_safe=False,
    # torch: its safe loader is the default from 2.6 on, and checkpoints are read with nothing else.
    install_requires=[
        "filelock>=3.13",
        "numpy",
        "psutil",
        "pyyaml",
        "sacrebleu>=2.0",
        "sacremoses",
        "scikit-learn",
        "scipy",
        "sentencepiece",
        "sentencex",
        "shtab",
        "submitit",
        "subword-nmt",
        "tabulate",
        "tokenizers",
        "torch>=2.6",
        "tqdm",
    ],
    # fairseq is an extra, not a requirement. Both distributions also ask for torchaudio, which is
    # never imported here, and environments are made without it (`pip install --no-deps`, see
    # requirements/fairseq.txt). pip follows the requirements of packages that are already there, so
    # with fairseq in the list above a plain `pip install .` would fetch torchaudio, and with it
    # perhaps another torch.
    extras_require={
        # CTranslate2, for comparison in `diet-mt bench speed`.
        "benchmark": ["ctranslate2>=4.6,<5"],
        # Drives an installed Chromium, in which tests use the leaderboard's page.
        "browser": ["playwright"],
        # The language of a line, in the cleaning of corpora. It requires numpy >= 2, which
        # stock fairseq does not run with; it works with older ones, too.
        "cleaning": ["py3langid"],
        # diet-mt export, and the runtime of its ONNX files.
        "export": ["ctranslate2>=4.6,<5", "onnx", "onnxruntime", "onnxscript", "torch>=2.7"],
        # Pictures.
        "report": ["matplotlib", "pillow"],
        "fairseq": [
            'fairseq-fixed==0.12.3.1; python_version >= "3.11"',
            'fairseq==0.12.2; python_version < "3.11"',
        ],
    },
    entry_points={"console_scripts": ["diet-mt = diet_mt.cli.main:main"]},
)
