"""Digests of GPT-2's byte pair encoding on random texts, which reference.h has. Needs python3-regex:

    python3 plugins/tokenizers/test/reference.py > plugins/tokenizers/test/reference.h

Training and encoding follow the papers, in quadratic time; the pattern is the one of GPT-2's
encoder.py. A digest is FNV-1a of 64 bits over numbers of four bytes, the lower ones first.
"""

from collections import Counter

import regex

PATTERN = regex.compile(
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+")
MASK = 2**64 - 1


class Numbers:
    def __init__(self, seed):
        self.state = seed

    def below(self, bound):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) & MASK
        return (self.state >> 33) % bound


# Blocks that Unicode has had for long: two libraries agree about their characters.
BLOCKS = [(0x20, 95), (0x61, 26), (0x61, 26), (0x41, 26), (0x30, 10), (0xA1, 95), (0x3B1, 25),
          (0x410, 64), (0x4E00, 512), (0x3041, 86), (0x1F600, 80)]
SPACES = [0x20, 0x20, 0x20, 0x20, 0x0A, 0x0A, 0x09, 0x0D, 0x85, 0xA0, 0x2003, 0x2028, 0x3000]
PIECES = ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'", "\u2019", " the", "the", " and", "ing",
          "\u0661\u0662", "\u00BD", "  ", "\n\n", " \n "]


def text(numbers):
    text = ""
    for _ in range(numbers.below(40)):
        kind = numbers.below(len(BLOCKS) + 5)
        if kind < len(BLOCKS):
            first, count = BLOCKS[kind]
            text += chr(first + numbers.below(count))
        elif kind < len(BLOCKS) + 2:
            text += chr(SPACES[numbers.below(len(SPACES))])
        else:
            text += PIECES[numbers.below(len(PIECES))]
    return text


def pairs_of(word):
    return list(zip(word, word[1:]))


def merged(word, pair):
    result, at = [], 0
    while at < len(word):
        if tuple(word[at:at + 2]) == pair:
            result.append(word[at] + word[at + 1])
            at += 2
        else:
            result.append(word[at])
            at += 1
    return tuple(result)


def trained(texts, size):
    words = Counter()
    for one in texts:
        for word in PATTERN.findall(one):
            words[tuple(bytes([byte]) for byte in word.encode())] += 1
    vocabulary = {bytes([byte]): byte for byte in range(256)}
    merges = []
    while len(vocabulary) < size:
        counts = Counter()
        for word, count in words.items():
            for pair in pairs_of(word):
                counts[pair] += count
        best = min(counts, key=lambda pair: (-counts[pair], pair))
        if counts[best] < 2:
            break
        merges.append(best)
        vocabulary.setdefault(best[0] + best[1], len(vocabulary))
        changed = Counter()
        for word, count in words.items():
            changed[merged(word, best)] += count
        words = changed
    return vocabulary, merges


def encoded(one, vocabulary, ranks):
    tokens = []
    for word in PATTERN.findall(one):
        pieces = tuple(bytes([byte]) for byte in word.encode())
        while len(pieces) > 1:
            best = min(pairs_of(pieces), key=lambda pair: ranks.get(pair, len(ranks)))
            if best not in ranks:
                break
            pieces = merged(pieces, best)
        tokens += [vocabulary[piece] for piece in pieces]
    return tokens


def digest(numbers):
    value = 0xCBF29CE484222325
    for number in numbers:
        for byte in number.to_bytes(4, "little"):
            value = ((value ^ byte) * 0x100000001B3) & MASK
    return value


SEED, COUNT, FITTED, SIZE = 20261126, 10000, 600, 700
numbers = Numbers(SEED)
texts = [text(numbers) for _ in range(COUNT)]
vocabulary, merges = trained(texts[:FITTED], SIZE - 1)
ranks = {pair: rank for rank, pair in enumerate(merges)}
tokens = []
for one in texts:
    tokens += encoded(one, vocabulary, ranks) + [0xFFFFFFFF]

print(f"""#pragma once

#include <cstdint>

// Written by reference.py.

namespace treadle::tokenizers {{

inline constexpr std::uint64_t kSeed = {SEED};
inline constexpr int kTexts = {COUNT};
inline constexpr int kFitted = {FITTED};  // the first of them
inline constexpr int kSize = {SIZE};
inline constexpr std::uint64_t kTextsDigest = {digest(ord(c) for one in texts for c in one)}U;
inline constexpr std::uint64_t kMergesDigest = {digest(vocabulary[x] for pair in merges for x in pair)}U;
inline constexpr std::uint64_t kTokensDigest = {digest(tokens)}U;  // 0xFFFFFFFF behind each text

}}  // namespace treadle::tokenizers""")
