# The numbers of docs/tutorials/from-pytorch.md that are PyTorch's (1.13.1), and examples/data/iris-start.safetensors, the
# weights that both trainings start from. In a folder with iris.csv of that page:
#   python3 pytorch.py
import csv
import json
import struct

import torch
from torch import nn


def save(state, path):
    """What safetensors.torch.save_file writes, without its package."""
    header, data = {}, b""
    for name, tensor in state.items():
        content = tensor.numpy().tobytes()
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(4, 16)
        self.fc2 = nn.Linear(16, 3)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x)))


rows = list(csv.reader(open("iris.csv")))[1:]
names = sorted({row[4] for row in rows})
x = torch.tensor([[float(value) for value in row[:4]] for row in rows])
y = torch.tensor([names.index(row[4]) for row in rows])
validating = torch.tensor([row[5] == "validation" for row in rows])
x_train, y_train, x_val, y_val = x[~validating], y[~validating], x[validating], y[validating]
mean, std = x_train.mean(0), x_train.std(0, unbiased=False)
x_train, x_val = (x_train - mean) / std, (x_val - mean) / std

torch.manual_seed(0)
model = Net()
save(model.state_dict(), "iris-start.safetensors")
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
loss_fn = nn.CrossEntropyLoss()
for epoch in range(20):
    model.train()
    total = 0.0
    for batch in torch.arange(len(x_train)).split(16):
        optimizer.zero_grad()
        loss = loss_fn(model(x_train[batch]), y_train[batch])
        loss.backward()
        optimizer.step()
        total += loss.item() * len(batch)
    model.eval()
    with torch.no_grad():
        logits = model(x_val)
    print(f"{epoch + 1:2d}/20 {total / len(x_train):10.4f} {loss_fn(logits, y_val):10.4f}"
          f" {(logits.argmax(1) == y_val).float().mean():10.4f}")
