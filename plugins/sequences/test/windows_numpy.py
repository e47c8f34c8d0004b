"""The numbers of AreThoseOfNumpy in windows_test.cpp (written with numpy 1.24.2)."""
import numpy as np

x = (np.arange(24) * 7 % 13).reshape(12, 2)
y = np.arange(12) * 3 % 7
lookback, horizon, gap, stride = 4, 2, 1, 2
count = 12 - (lookback + gap + horizon) + 1
windows = np.lib.stride_tricks.sliding_window_view
inputs = windows(x, lookback, axis=0).transpose(0, 2, 1)[:count:stride]
targets = windows(y, horizon)[lookback + gap:][:count:stride]
print(inputs.shape, inputs.ravel().tolist())
print(targets.shape, targets.ravel().tolist())
