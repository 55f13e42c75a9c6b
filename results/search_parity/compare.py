"""All hypotheses of this package's beam search and of fairseq's, over a test set.

python results/search_parity/compare.py DATA/bin checkpoints/*.1/checkpoint_best.pt > parity.jsonl

Compares order, tokens, scores and log-probabilities of tokens, with beam 10 and length penalty 0.6.
Sentences with differences are decoded again in float64; if the searches then agree, two candidates
of a step had equal scores in float32.
"""

import json
import sys
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path

import torch
from fairseq import utils
from fairseq.sequence_generator import SequenceGenerator

from diet_mt.bench.rows import environment
from diet_mt.decoding.generator import BeamSearchGenerator
from diet_mt.evaluation.checkpoint import load_with_task
from diet_mt.evaluation.fairseq_options import import_fairseq, quiet


class Searches:
    """Both searches with one model, over the test split of its task."""

    def __init__(self, model, cfg, task):
        self.model, self.models = model, [model]
        model.prepare_for_inference_(cfg)
        task.load_dataset("test")
        self.dataset = task.dataset("test")
        self.batches = task.get_batch_iterator(
            dataset=self.dataset, max_tokens=4096, max_positions=model.max_positions()
        ).next_epoch_itr(shuffle=False)
        self.generators = [
            kind(self.models, task.target_dictionary, beam_size=10, len_penalty=0.6)
            for kind in (BeamSearchGenerator, SequenceGenerator)
        ]

    def decode(self, batch):
        """The hypotheses of a batch, by our search and by fairseq's."""
        return [generator.generate(self.models, batch) for generator in self.generators]

    def agree_in_float64(self, sentence):
        """Whether both searches agree on a sentence, alone and in double precision."""
        with in_float64(self.models):
            ours, theirs = self.decode(self.dataset.collater([self.dataset[sentence]]))
        return all(same(one, two) for one, two in zip_longest(ours[0], theirs[0]))

    def compared(self):
        """``compare`` over the whole split; ``tie``: where both agree in double precision."""
        numbers, hypotheses = [], ([], [])
        for number, batch in enumerate(self.batches, start=1):
            print(f"batch {number} of {len(self.batches)}", file=sys.stderr)
            numbers += batch["id"].tolist()
            for all_of, more in zip(hypotheses, self.decode(batch), strict=True):
                all_of += more
        record = compare(numbers, *hypotheses)
        for difference in record["differences"]:
            difference["tie"] = self.agree_in_float64(difference["sentence"])
        return {"encoding": self.model.signature, **record}


@contextmanager
def in_float64(models):
    """The models and fairseq's search, whose scores are float, in double precision."""

    def log_softmax(x, dim, onnx_trace=False):
        return torch.log_softmax(x, dim)

    before = torch.Tensor.float, utils.log_softmax
    for model in models:
        model.double()  # and back: nothing is lost
    torch.Tensor.float, utils.log_softmax = torch.Tensor.double, log_softmax
    try:
        yield
    finally:
        torch.Tensor.float, utils.log_softmax = before
        for model in models:
            model.float()


def same(one, two):
    """Whether both hypotheses exist and have the same tokens."""
    return one is not None and two is not None and torch.equal(one["tokens"], two["tokens"])


def compare(numbers, ours, theirs):
    """Equal hypotheses, the largest difference between their scores, and the sentences with other
    hypotheses, or not as many.
    """
    equal, errors, differences = 0, [0.0], []
    for number, own, other in zip(numbers, ours, theirs, strict=True):
        fitting = [same(*pair) for pair in zip_longest(own, other)]
        equal += sum(fitting)
        pairs = list(zip(own, other, strict=False))
        gaps = [abs(float(one["score"]) - float(two["score"])) for one, two in pairs]
        for (one, two), gap, fits in zip(pairs, gaps, fitting, strict=False):
            if fits:
                by_token = (one["positional_scores"] - two["positional_scores"]).abs().max()
                errors += [gap, float(by_token)]
        if not all(fitting):
            differences.append(
                {
                    "sentence": number,
                    "ranks": [rank for rank, fits in enumerate(fitting, start=1) if not fits],
                    "largest_gap": max(gaps, default=0.0),
                    "hypotheses": [len(own), len(other)],
                }
            )
    return {
        "sentences": len(numbers),
        "hypotheses": sum(len(own) for own in ours),
        "equal": equal,
        "score_error": max(errors),
        "differences": differences,
    }


def main(data, *checkpoints):
    import_fairseq()
    quiet()
    facts = environment("cpu", "", ()) | {"command": f"python {' '.join(sys.argv)}"}
    for path in checkpoints:
        print(path, file=sys.stderr)
        searches = Searches(*load_with_task(Path(path), Path(data)))
        print(json.dumps({**searches.compared(), **facts}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
