# SPDX-License-Identifier: Apache-2.0
"""Trains a small convolutional classifier on handwritten digits: the 1,797 scans of 8x8 pixels that scikit-learn ships.

    python examples/torch_digits.py                       one process
    ronde run -np 4 python examples/torch_digits.py       four processes, one model

The batch size is that of all processes together, so the training is the same however many there are. The lines that
Ronde asks for are marked.
"""

import argparse
import time

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset
from tqdm import tqdm

import ronde.torch as hvd  # ronde 1: import


def digits(seed: int) -> tuple[TensorDataset, TensorDataset]:
    """(training set, test set): images as float32 (1, 8, 8) in 0 … 1, labels as int64. Every fifth scan is a test."""
    images, labels = load_digits(return_X_y=True)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed))
    images = torch.tensor(images, dtype=torch.float32).reshape(-1, 1, 8, 8)[order] / 16
    labels = torch.tensor(labels, dtype=torch.int64)[order]
    test = torch.arange(len(labels)) % 5 == 0
    return TensorDataset(images[~test], labels[~test]), TensorDataset(images[test], labels[test])


def classifier() -> nn.Module:
    """Two convolutions and two linear layers, without batch normalisation: its result does not depend on the local
    batch.
    """
    return nn.Sequential(
        *(nn.Conv2d(1, 32, 3, padding=1), nn.ReLU()),
        *(nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(64 * 4 * 4, 128), nn.ReLU(), nn.Linear(128, 10)),
    )


def accuracy(model: nn.Module, dataset: TensorDataset) -> float:
    """The share of the images that the model names rightly."""
    images, labels = dataset.tensors
    with torch.no_grad():
        return (model(images).argmax(dim=1) == labels).double().mean().item()


def greatest_difference(model: nn.Module) -> float:
    """The greatest difference between a weight of this rank and the same weight of any other rank."""
    weights = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
    highest = hvd.allreduce(weights, op=hvd.Max)
    lowest = hvd.allreduce(weights, op=hvd.Min)
    return (highest - lowest).max().item()


def train(arguments: argparse.Namespace) -> None:
    hvd.init()  # ronde 2: join the job
    torch.manual_seed(arguments.seed + hvd.rank())
    training, test = digits(arguments.seed)
    sampler = DistributedSampler(training, hvd.size(), hvd.rank(), seed=arguments.seed)  # ronde 3: share the samples
    if arguments.batch_size % hvd.size() != 0:
        raise SystemExit(f"--batch-size {arguments.batch_size} cannot be shared equally by {hvd.size()} ranks")
    batch = arguments.batch_size // hvd.size()
    loader = DataLoader(training, batch, sampler=sampler, num_workers=2, persistent_workers=True, drop_last=True)

    model = classifier()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.08, momentum=0.9)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)  # ronde 4: start from the same weights
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)  # ronde 5: and the same optimizer
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())  # ronde 6

    seconds = 0.0
    samples = 0
    for epoch in range(arguments.epochs):
        sampler.set_epoch(epoch)
        started = time.monotonic()
        for images, labels in tqdm(loader, f"epoch {epoch + 1}/{arguments.epochs}", disable=hvd.rank() != 0):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images), labels).backward()
            optimizer.step()
            samples += len(labels) * hvd.size()
        if epoch > 0 or arguments.epochs == 1:  # the first one also starts the loader's workers
            seconds += time.monotonic() - started
        else:
            samples = 0

    if arguments.check:
        difference = greatest_difference(model)
        if hvd.rank() == 0:
            print(f"greatest difference between the weights of the ranks: {difference:g}")
    if hvd.rank() == 0:
        print(
            f"RESULT example=torch_digits ranks={hvd.size()} accuracy={accuracy(model, test):.4f} "
            f"samples_per_s={samples / seconds:.0f}"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--batch-size", type=int, default=48, help="of all ranks together")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--check", action="store_true", help="print how much the ranks' weights differ (0 is right)")
    train(parser.parse_args())
