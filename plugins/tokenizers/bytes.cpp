#include "bytes.h"

#include "stored_values.h"

namespace treadle::tokenizers {

std::vector<std::int64_t> Bytes::do_encode(std::string_view text) const {
  std::vector<std::int64_t> tokens;
  tokens.reserve(text.size());
  for (const char byte : text)
    tokens.push_back(static_cast<unsigned char>(byte));
  return tokens;
}

std::string Bytes::do_decode(std::span<const std::int64_t> tokens) const {
  std::string text;
  text.reserve(tokens.size());
  for (const std::int64_t token : tokens) {
    if (token < kBytes)
      text += static_cast<char>(token);
  }
  return text;
}

std::string Bytes::do_token(std::int64_t index) const {
  return index < kBytes ? std::string(1, static_cast<char>(index)) : std::string();
}

StateDict Bytes::do_state() const {
  StateDict state;
  state.put("end_of_text", nlohmann::json(with_end_));
  return state;
}

void Bytes::do_load_state(const StateDict& state) {
  with_end_ = stored_bool(state, "end_of_text");
  is_fitted_ = true;
}

}  // namespace treadle::tokenizers
