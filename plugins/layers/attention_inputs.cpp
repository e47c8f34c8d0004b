#include "attention_inputs.h"

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/ones.h>

#include <treadle/base/error.h>

#include "padding.h"

namespace treadle::layers {
namespace {

bool is_of_numbers(const TensorSpec& spec) {
  return c10::isFloatingType(spec.dtype);
}

bool size_may_be(std::int64_t size, std::int64_t wanted) {
  return size == wanted || size == TensorSpec::kVaries || wanted == TensorSpec::kVaries;
}

bool sizes_fit(const std::vector<std::int64_t>& sizes, const std::vector<std::int64_t>& wanted) {
  if (sizes.size() != wanted.size())
    return false;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (!size_may_be(sizes[i], wanted[i]))
      return false;
  }
  return true;
}

/// Of [B, T, S] or [B, heads, T, S] or [T, S], the sizes that fit.
std::vector<std::int64_t> sizes_wanted(std::size_t dimensions, std::int64_t rows,
                                       std::int64_t heads, std::int64_t queries,
                                       std::int64_t keys) {
  switch (dimensions) {
    case 2:
      return {queries, keys};
    case 3:
      return {rows, queries, keys};
    default:
      return {rows, heads, queries, keys};
  }
}

[[noreturn]] void refuse_size(const char* what, const TensorSpec& given,
                              std::vector<std::int64_t> wanted) {
  throw DataError(std::string(what) + " is " + given.text() + ", but queries and keys ask for " +
                  TensorSpec(std::move(wanted), given.dtype).text());
}

/// Whether it has a row for each row of the batch, unlike a matrix that is the same for all.
bool is_by_row(const TensorSpec& reference, const TensorSpec& stream) {
  return reference.sizes.front() == stream.sizes.front();
}

/// Masks and biases with a dimension of heads, to stand beside [B, heads, T, S].
at::Tensor beside_scores(const at::Tensor& given, const at::Tensor& scores, const char* what) {
  const TensorSpec spec = TensorSpec::of(given);
  const bool is_shared = given.dim() == 4 && given.size(1) == 1;
  const std::vector<std::int64_t> wanted =
      sizes_wanted(spec.sizes.size(), scores.size(0), is_shared ? 1 : scores.size(1),
                   scores.size(2), scores.size(3));
  if (spec.sizes != wanted)
    refuse_size(what, spec, wanted);
  return given.dim() == 3 ? given.unsqueeze(1) : given;
}

/// int64 [B, n] for as many positions as there are.
const at::Tensor& segments_for(const at::Tensor& segments, std::int64_t positions) {
  if (segments.size(1) != positions) {
    throw DataError("the segments have " + std::to_string(segments.size(1)) +
                    " positions, but the sequences have " + std::to_string(positions));
  }
  return segments;
}

}  // namespace

AttentionInputs::AttentionInputs(const LayerSpec& spec, std::int64_t heads) {
  const TensorSpec& stream = spec.inputs.front();
  const auto put = [&](std::optional<std::size_t>& role, std::size_t index, const char* what) {
    if (role) {
      throw DataError(std::string("takes one ") + what + ", got " + spec.inputs[*role].text() +
                      " and " + spec.inputs[index].text());
    }
    role = index;
  };
  for (std::size_t i = 1; i < spec.inputs.size(); ++i) {
    const TensorSpec& given = spec.inputs[i];
    const std::size_t dimensions = given.sizes.size();
    const bool is_mask = given.dtype == c10::ScalarType::Bool;
    const bool is_long = given.dtype == c10::ScalarType::Long;
    const bool is_matrix_for_all = dimensions == 2 && !is_by_row(given, stream);
    if (is_of_numbers(given) && dimensions == 3) {
      put(memory, i, "sequence to look at");
    } else if (is_of_numbers(given) && (dimensions == 4 || is_matrix_for_all)) {
      put(bias, i, "bias of the scores");
    } else if (is_mask && (dimensions == 3 || dimensions == 4 || is_matrix_for_all)) {
      put(mask, i, "mask of queries and keys");
    } else if ((is_long && dimensions == 1) || (is_mask && dimensions == 2)) {
      put(padding, i, "description of padding");
    } else if (is_long && dimensions == 2 && !segments) {
      segments = i;
    } else if (is_long && dimensions == 2) {
      put(memory_segments, i, "list of segments for each sequence");
    } else {
      throw DataError(
          "takes as references a sequence [B, S, width], lengths [B] int64, padding [B, S] bool, "
          "segments [B, T] int64, a mask [B, T, S] bool, a bias [B, heads, T, S], got " +
          given.text());
    }
  }
  if (segments && memory && !memory_segments) {
    throw DataError(
        "looks at another sequence, so it takes the segments of both, first [B, T] of "
        "the stream, got only " +
        spec.inputs[*segments].text());
  }
  if (memory_segments && !memory) {
    throw DataError("looks at itself, so it takes one list of segments, got " +
                    spec.inputs[*segments].text() + " and " + spec.inputs[*memory_segments].text());
  }
  const std::int64_t queries = stream.sizes[1];
  const std::int64_t keys = memory ? spec.inputs[*memory].sizes[1] : queries;
  const auto expect = [&](std::optional<std::size_t> role, const char* what,
                          std::vector<std::int64_t> wanted) {
    if (role && !sizes_fit(spec.inputs[*role].sizes, wanted))
      refuse_size(what, spec.inputs[*role], std::move(wanted));
  };
  const std::int64_t rows = stream.sizes.front();
  if (padding && spec.inputs[*padding].sizes.size() == 2)
    expect(padding, "the mask of padding", {rows, keys});
  expect(segments, "the list of segments", {rows, queries});
  expect(memory_segments, "the list of the other sequence's segments", {rows, keys});
  for (const auto& [role, what] :
       {std::pair(mask, "the mask"), std::pair(bias, "the bias of the scores")}) {
    if (!role)
      continue;
    const std::vector<std::int64_t>& sizes = spec.inputs[*role].sizes;
    const bool is_shared = sizes.size() == 4 && sizes[1] == 1;
    expect(role, what, sizes_wanted(sizes.size(), rows, is_shared ? 1 : heads, queries, keys));
  }
}

bool AttentionInputs::takes_indices(std::size_t index) const {
  return index == padding || index == segments || index == memory_segments || index == mask;
}

MaskedScores masked(const at::Tensor& scores, const AttentionInputs& roles, const Inputs& inputs,
                    const Visibility& visibility) {
  const std::int64_t queries = scores.size(2);
  const std::int64_t keys = scores.size(3);
  MaskedScores result{scores, {}};
  at::Tensor hidden;  // which keys a query does not see
  const auto hide = [&](const at::Tensor& more) {
    hidden = hidden.defined() ? hidden.logical_or(more) : more;
  };
  // Key s stands where query t = s - shift does: keys of a cache stand before the queries.
  const std::int64_t shift = roles.memory ? 0 : keys - queries;
  const auto all = [&] { return at::ones({queries, keys}, scores.options().dtype(at::kBool)); };
  if (visibility.is_causal)
    hide(all().triu_(shift + 1));
  if (visibility.window) {
    hide(all().tril_(shift - *visibility.window - 1));
    if (!visibility.is_causal)
      hide(all().triu_(shift + *visibility.window + 1));
  }
  if (roles.segments) {
    const at::Tensor& of_queries = segments_for(inputs[*roles.segments], queries);
    const at::Tensor& of_keys =
        roles.memory ? segments_for(inputs[*roles.memory_segments], keys) : of_queries;
    hide(of_queries.unsqueeze(2).ne(of_keys.unsqueeze(1)).unsqueeze(1));
  }
  if (roles.padding) {
    hide(real_positions(inputs[*roles.padding], keys).logical_not().unsqueeze(1).unsqueeze(1));
  }
  if (roles.mask)
    hide(beside_scores(inputs[*roles.mask], scores, "the mask").logical_not());
  if (roles.bias) {
    const at::Tensor bias = beside_scores(inputs[*roles.bias], scores, "the bias of the scores")
                                .to(scores.scalar_type());
    const at::Tensor unseen = bias.eq(-std::numeric_limits<double>::infinity());
    result.scores = result.scores.add(bias.masked_fill(unseen, 0));
    hide(unseen);
  }
  if (!hidden.defined())
    return result;
  // Of itself a position sees itself at least, whatever its segment and its window.
  const bool may_see_nothing = roles.padding || roles.mask || roles.bias || roles.memory;
  if (may_see_nothing) {
    // A softmax over nothing would be no number, and its gradient neither.
    result.blind = hidden.all(-1, /*keepdim=*/true);
    hidden = hidden.logical_and(result.blind.logical_not());
  }
  result.scores = result.scores.masked_fill(hidden, -std::numeric_limits<double>::infinity());
  return result;
}

}  // namespace treadle::layers
