"""A workload as it lies in a folder: workflow.json, x.npy, y.npy; and what the peers have in common around it.

A peer ends with NOT_HERE, and a sentence on the standard error, where what it measures is not installed.
"""
import argparse
import json
import os
import struct
import sys

NOT_HERE = 3


def not_here(why):
    print(why, file=sys.stderr)
    sys.exit(NOT_HERE)


try:
    import numpy as np
    import torch
except ImportError as error:
    not_here(f"{error} (Debian: python3-torch, python3-numpy)")

from networks import make_network


class Workload:
    """The rows that train are the first four fifths, as in the loop by hand."""

    def __init__(self, folder, double=False):
        with open(os.path.join(folder, "workflow.json"), encoding="utf-8") as file:
            self.document = json.load(file)
        self.double = double
        self.classifies = self.document["loss"]["use"] == "cross_entropy"
        numbers = np.float64 if double else np.float32
        self.x = np.load(os.path.join(folder, "x.npy")).astype(numbers, copy=False)
        self.y = np.load(os.path.join(folder, "y.npy")).astype(np.int64 if self.classifies else numbers, copy=False)
        self.outputs = int(self.y.max()) + 1 if self.classifies else self.y.shape[1]
        self.training_rows = len(self.x) * 4 // 5
        self.epochs = self.document["training"]["epochs"]
        self.batch_size = self.document["training"]["batch_size"]
        self.learning_rate = self.document["optimizer"]["learning_rate"]

    def network(self):
        network = make_network(self.document["model"], self.x.shape[1:], self.outputs)
        return network.double() if self.double else network

    def criterion(self):
        return torch.nn.CrossEntropyLoss() if self.classifies else torch.nn.MSELoss()


def read_safetensors(path):
    """Eight bytes of length, JSON with name -> {dtype, shape, data_offsets}, the tensors' bytes."""
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        values = np.frombuffer(data[begin:end], {"F32": "<f4", "F64": "<f8", "I64": "<i8"}[entry["dtype"]])
        tensors[name] = torch.from_numpy(values.reshape(entry["shape"]).copy())
    return tensors


def load_weights(network, path):
    """The weights that a run of Treadle left behind; a module that was adapted has its names behind "net."."""
    weights = read_safetensors(path)
    network.load_state_dict({name.removeprefix("net."): tensor for name, tensor in weights.items()})


def arguments(description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("folder", help="has workflow.json, x.npy and y.npy; `whole-steps --folder` writes such")
    parser.add_argument("--threads", type=int, default=1, help="threads of an operator")
    parser.add_argument("--epochs", type=int, help="instead of the document's")
    parser.add_argument("--weights", help="initial weights: a model.safetensors")
    parser.add_argument("--no-shuffle", dest="shuffle", action="store_false", help="rows in their own order")
    parser.add_argument("--double", action="store_true", help="in float64")
    return parser


def report(**values):
    print(json.dumps({"libtorch": torch.__version__, **values}))
