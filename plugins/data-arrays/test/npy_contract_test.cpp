#include <filesystem>

#include <treadle/testing/data/data_contract.h>
#include <treadle/testing/plugin/plugin_under_test.h>
#include <treadle/testing/support/source_path.h>

namespace treadle::testing {
namespace {

using Json = nlohmann::json;

/// The files in test/data, made by NumPy (see npy_data_test.cpp).
std::string made_by_numpy(const char* name) {
  return source_path(TREADLE_TEST_DATA) / name;
}

DataCase npy_case(std::string name, const Json& parameters) {
  return {std::move(name), [=] {
            static const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
            Json complete = {{"inputs", made_by_numpy("table.npy")},
                             {"target", made_by_numpy("labels.npy")}};
            complete.update(parameters);
            return plugin.make<DataProvider>("npy", complete);
          }};
}

INSTANTIATE_TEST_SUITE_P(
    Npy, DataContract,
    ::testing::Values(
        npy_case("MemoryClasses", {{"access", "memory"}}),
        npy_case("MappedClasses", Json::object()),
        npy_case("ChunkedClasses",
                 {{"access", "chunked"}, {"chunk_rows", 2}, {"resident_bytes", 48}}),
        npy_case("SeveralTargets",
                 {{"inputs", {{"path", made_by_numpy("digits.npy")}, {"role", "image"}}},
                  {"target",
                   {{"class", made_by_numpy("labels.npy")},
                    {"numbers", made_by_numpy("table.npy")}}}}),
        npy_case("WeightsOfATarget", {{"target",
                                       {{"path", made_by_numpy("table.npy")},
                                        {"weights", made_by_numpy("labels.npy")}}}}),
        npy_case("Images", {{"inputs", made_by_numpy("digits.npy")}}),
        npy_case("Everything",
                 {{"inputs",
                   {{"table", made_by_numpy("table.npy")}, {"image", made_by_numpy("digits.npy")}}},
                  {"target", made_by_numpy("table.npy")},
                  {"weights", made_by_numpy("labels.npy")},
                  {"groups", made_by_numpy("labels.npy")},
                  {"times", made_by_numpy("labels.npy")},
                  {"access", "chunked"},
                  {"chunk_rows", 1}})),
    CaseName());

}  // namespace
}  // namespace treadle::testing
