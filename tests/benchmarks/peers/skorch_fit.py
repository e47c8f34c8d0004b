#!/usr/bin/env python3
"""skorch, with everything it has on by default but printing: the training rows are the first four fifths, the others validate.

Prints a line of JSON as eager.py does, without the first step. With --folds K the rows are cross-validated by
scikit-learn instead, and the line has its seconds.
"""
import sys
import time

from workload import Workload, arguments, load_weights, not_here, report

import torch

try:
    import skorch
    import sklearn.model_selection
    from skorch.dataset import Dataset
    from skorch.helper import predefined_split
except ImportError as error:
    not_here(f"{error} (Debian: python3-skorch, python3-pandas)")


def estimator(workload, network, epochs, shuffle, **more):
    kind = skorch.NeuralNetClassifier if workload.classifies else skorch.NeuralNetRegressor
    return kind(network, criterion=workload.criterion(), optimizer=torch.optim.Adam, lr=workload.learning_rate,
                batch_size=workload.batch_size, max_epochs=epochs, iterator_train__shuffle=shuffle, verbose=0,
                callbacks__print_log=None, **more)


def train(workload, epochs, weights, shuffle):
    network = workload.network()
    if weights:
        load_weights(network, weights)
    rows = workload.training_rows
    validation = Dataset(workload.x[rows:], workload.y[rows:])
    net = estimator(workload, network, epochs, shuffle, train_split=predefined_split(validation))
    net.initialize()  # partial_fit() goes on with these weights, fit() would draw new ones
    begin = time.monotonic()
    net.partial_fit(workload.x[:rows], workload.y[:rows])
    seconds = time.monotonic() - begin
    steps = epochs * -(-rows // workload.batch_size)
    report(losses=net.history[:, "train_loss"], microseconds_per_step=seconds * 1e6 / steps)


def cross_validate(workload, epochs, folds):
    net = estimator(workload, workload.network(), epochs, True, train_split=None)
    begin = time.monotonic()
    sklearn.model_selection.cross_validate(
        net, workload.x, workload.y, cv=sklearn.model_selection.KFold(folds, shuffle=True, random_state=1),
        scoring="accuracy" if workload.classifies else "neg_mean_squared_error", error_score="raise")
    report(seconds=time.monotonic() - begin)


def main():
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("--folds", type=int, help="cross-validate with so many folds")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    workload = Workload(options.folder, options.double)
    epochs = options.epochs or workload.epochs
    if options.folds:
        cross_validate(workload, epochs, options.folds)
    else:
        train(workload, epochs, options.weights, options.shuffle)


if __name__ == "__main__":
    sys.exit(main())
