#include <nlohmann/json.hpp>

#include <treadle/testing/data/tokenizer_contract.h>
#include <treadle/testing/plugin/plugin_under_test.h>

namespace treadle::testing {
namespace {

TokenizerCase case_of(std::string name, const std::string& tokenizer,
                      const nlohmann::json& parameters = {}, bool is_exact = true) {
  return {.name = std::move(name),
          .make =
              [tokenizer, parameters] {
                static const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
                return plugin.make<Tokenizer>(tokenizer, parameters);
              },
          .is_exact = is_exact};
}

INSTANTIATE_TEST_SUITE_P(
    Tokenizers, TokenizerContract,
    ::testing::Values(
        case_of("Bytes", "bytes"), case_of("BytesWithAnEnd", "bytes", {{"end_of_text", true}}),
        case_of("Characters", "characters"),
        case_of("CharactersWithAnEnd", "characters", {{"end_of_text", true}}),
        case_of("CharactersOrUnknown", "characters", {{"unknown", "token"}, {"end_of_text", true}},
                false),
        case_of("Words", "words", {}, false),
        case_of("FewLowerCaseWords", "words",
                {{"lowercase", true}, {"max_vocabulary", 20}, {"end_of_text", true}}, false),
        case_of("WordsThatComeTwice", "words", {{"min_count", 2}}, false),
        case_of("ByteBpe", "byte_bpe", {{"vocabulary_size", 400}}),
        case_of("ByteBpeOfBytes", "byte_bpe", {{"vocabulary_size", 256}, {"end_of_text", false}})),
    CaseName());

}  // namespace
}  // namespace treadle::testing
