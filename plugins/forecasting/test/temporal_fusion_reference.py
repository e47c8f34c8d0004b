"""The Temporal Fusion Transformer in PyTorch, for temporal_fusion_test.cpp: prints the numbers that
stand there. PyTorch 1.13. Equations of Lim et al. (2021), section 4.
"""
import torch
from torch import nn
from torch.nn import functional as F

torch.set_default_dtype(torch.float64)
ROWS, STEPS, HORIZON, WIDTH, HEADS, OUTPUTS = 2, 5, 3, 4, 2, 2


class Grn(nn.Module):
    """Equations (2) to (5)."""

    def __init__(self, size_in, out=None, context=None):
        super().__init__()
        out = out or size_in
        self.fc1 = nn.Linear(size_in, WIDTH)
        self.context = nn.Linear(context, WIDTH, bias=False) if context else None
        self.fc2 = nn.Linear(WIDTH, WIDTH)
        self.gate = nn.Linear(WIDTH, 2 * out)
        self.skip = nn.Linear(size_in, out) if size_in != out else None
        self.norm = nn.LayerNorm(out)

    def forward(self, x, context=None):
        hidden = self.fc1(x)
        if context is not None:
            of_context = self.context(context)
            hidden = hidden + (of_context if x.dim() == 2 else of_context[:, None])
        value, gate = self.gate(self.fc2(F.elu(hidden))).chunk(2, -1)
        return self.norm((self.skip(x) if self.skip else x) + value * torch.sigmoid(gate))


class AddNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(WIDTH, 2 * WIDTH)
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, x, reference):
        value, gate = self.gate(x).chunk(2, -1)
        return self.norm(reference + value * torch.sigmoid(gate))


class Variables(nn.Module):
    """A gated residual network for each variable, their weights stacked."""

    def __init__(self, variables):
        super().__init__()
        self.fc1_weight = nn.Parameter(torch.empty(variables, WIDTH, WIDTH))
        self.fc1_bias = nn.Parameter(torch.empty(variables, WIDTH))
        self.fc2_weight = nn.Parameter(torch.empty(variables, WIDTH, WIDTH))
        self.fc2_bias = nn.Parameter(torch.empty(variables, WIDTH))
        self.gate_weight = nn.Parameter(torch.empty(variables, 2 * WIDTH, WIDTH))
        self.gate_bias = nn.Parameter(torch.empty(variables, 2 * WIDTH))
        self.norm_weight = nn.Parameter(torch.empty(variables, WIDTH))
        self.norm_bias = nn.Parameter(torch.empty(variables, WIDTH))

    def forward(self, x, j):
        hidden = F.linear(F.elu(F.linear(x, self.fc1_weight[j], self.fc1_bias[j])),
                          self.fc2_weight[j], self.fc2_bias[j])
        value, gate = F.linear(hidden, self.gate_weight[j], self.gate_bias[j]).chunk(2, -1)
        return F.layer_norm(x + value * torch.sigmoid(gate), (WIDTH,), self.norm_weight[j],
                            self.norm_bias[j])


class Selection(nn.Module):
    """Equations (6) to (8)."""

    def __init__(self, variables, context=None):
        super().__init__()
        self.weights = Grn(variables * WIDTH, variables, context)
        self.variables = Variables(variables)

    def forward(self, x, context=None):
        weights = torch.softmax(self.weights(x.flatten(-2), context), -1)
        total = 0
        for j in range(x.shape[-2]):
            total = total + weights[..., j, None] * self.variables(x[..., j, :], j)
        return total, weights


class Numbers(nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(columns, WIDTH))
        self.bias = nn.Parameter(torch.empty(columns, WIDTH))

    def forward(self, x):
        return x[..., None] * self.weight + self.bias


class Attention(nn.Module):
    """Equations (13) to (16)."""

    def __init__(self):
        super().__init__()
        head = WIDTH // HEADS
        self.query = nn.Linear(WIDTH, WIDTH, bias=False)
        self.key = nn.Linear(WIDTH, WIDTH, bias=False)
        self.value = nn.Linear(WIDTH, head, bias=False)
        self.out = nn.Linear(head, WIDTH, bias=False)

    def forward(self, x):
        q, k, v = self.query(x), self.key(x), self.value(x)
        mask = torch.ones(x.shape[1], x.shape[1]).triu(1).bool()
        results, attention = 0, 0
        for head in range(HEADS):
            part = slice(head * WIDTH // HEADS, (head + 1) * WIDTH // HEADS)
            scores = q[..., part] @ k[..., part].transpose(1, 2) / (WIDTH // HEADS) ** 0.5
            a = torch.softmax(scores.masked_fill(mask, -1e30), -1)
            results, attention = results + a @ v / HEADS, attention + a / HEADS
        return self.out(results)[:, -HORIZON:], attention[:, -HORIZON:]


class Tft(nn.Module):
    def __init__(self, has_static):
        super().__init__()
        context = WIDTH if has_static else None
        if has_static:
            self.static_numbers = Numbers(2)
            self.static_categories = nn.Embedding(3, WIDTH)
            self.static = Selection(3)
            self.contexts = nn.ModuleList(Grn(WIDTH) for _ in range(4))
        self.has_static = has_static
        self.past_numbers = Numbers(2)
        self.past = Selection(2, context)
        self.ahead_numbers = Numbers(2)
        self.ahead = Selection(2, context)
        self.encoder = nn.LSTM(WIDTH, WIDTH, batch_first=True)
        self.decoder = nn.LSTM(WIDTH, WIDTH, batch_first=True)
        self.lstm_gate = AddNorm()
        self.enrichment = Grn(WIDTH, None, context)
        self.attention = Attention()
        self.attention_gate = AddNorm()
        self.feed_forward = Grn(WIDTH)
        self.feed_forward_gate = AddNorm()
        self.head = nn.Linear(WIDTH, OUTPUTS)

    def forward(self, past, ahead, static, categories):
        of_selection = of_enrichment = None
        state = (torch.zeros(1, ROWS, WIDTH), torch.zeros(1, ROWS, WIDTH))
        if self.has_static:
            variables, _ = self.static(torch.cat([self.static_numbers(static),
                                                  self.static_categories(categories)], -2))
            of_selection, of_enrichment, hidden, cell = [grn(variables) for grn in self.contexts]
            state = (hidden[None], cell[None])
        past, _ = self.past(self.past_numbers(past), of_selection)
        ahead, _ = self.ahead(self.ahead_numbers(ahead), of_selection)
        seen, state = self.encoder(past, state)
        coming, _ = self.decoder(ahead, state)
        temporal = self.lstm_gate(torch.cat([seen, coming], 1), torch.cat([past, ahead], 1))
        enriched = self.enrichment(temporal, of_enrichment)
        attended, _ = self.attention(enriched)
        attended = self.attention_gate(attended, enriched[:, -HORIZON:])
        return self.head(self.feed_forward_gate(self.feed_forward(attended),
                                                temporal[:, -HORIZON:]))


def show(has_static):
    net = Tft(has_static)
    parameters = list(net.parameters())
    for k, p in enumerate(parameters):
        p.data.copy_((0.6 * torch.sin(1.3 * torch.arange(p.numel()) + k) + (p.dim() == 1) * 0.4).view_as(p))
    wave = lambda *sizes: (2 * torch.cos(0.37 * torch.arange(float(torch.Size(sizes).numel())))).view(sizes)
    out = net(wave(ROWS, STEPS, 2), wave(ROWS, HORIZON, 2) * 0.5, wave(ROWS, 2) - 1,
              torch.tensor([[2], [0]]))
    print(out.flatten().tolist())
    (out.flatten() * torch.cos(torch.arange(12.0))).sum().backward()
    print([(p.grad.flatten() * torch.cos(0.5 * torch.arange(p.numel()))).sum().item()
           for p in parameters])


show(True)
show(False)
