#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <treadle/core/data/tokenizer.h>
#include <treadle/testing/component/case_name.h>
#include <treadle/testing/component/contract_suite.h>

/// What every Tokenizer must keep. Include in one source file of a test program:
///
///     INSTANTIATE_TEST_SUITE_P(Tokenizers, TokenizerContract, ::testing::Values(
///         TokenizerCase{"Bytes", [] { return plugin().make<Tokenizer>("bytes"); }}),
///         CaseName());
namespace treadle::testing {

/// Several scripts, one to four bytes a character, words that come again, and what an end of text
/// is often called.
std::vector<std::string> tokenizer_documents();

struct TokenizerCase {
  std::string name;
  std::function<std::unique_ptr<Tokenizer>()> make;
  /// Whether is_exact().
  bool is_exact = true;
  /// What fit() gets. All characters of them can be encoded, in any order.
  std::vector<std::string> documents = tokenizer_documents();
};

TREADLE_CONTRACT_SUITE(TokenizerContract, TokenizerCase);

}  // namespace treadle::testing
