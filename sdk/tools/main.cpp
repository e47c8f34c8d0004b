// treadle-pack [--tbb] --output NOTES.cpp PLUGIN.JSON [SCHEMA...]
// Checks what a plugin's folder says of it and writes the source that puts it into the library. Run
// by treadle_add_plugin() at build time.
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <treadle/base/error.h>

#include "pack.h"

namespace {

constexpr const char* kUsage =
    "usage: treadle-pack [--tbb] --output NOTES.cpp PLUGIN.JSON [SCHEMA...]\n"
    "Checks plugin.json and the schemas beside it and writes the C++ source of the library's "
    "notes.\n";

struct Arguments {
  std::filesystem::path output;
  std::vector<std::filesystem::path> inputs;
  bool tbb = false;
  bool help = false;
};

Arguments parse(const std::vector<std::string_view>& words) {
  Arguments arguments;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--help") {
      arguments.help = true;
    } else if (words[i] == "--tbb") {
      arguments.tbb = true;
    } else if (words[i] == "--output" && i + 1 < words.size()) {
      arguments.output = words[++i];
    } else if (words[i].starts_with("-")) {
      throw treadle::UsageError("unknown option " + std::string(words[i]) + "\n" + kUsage);
    } else {
      arguments.inputs.emplace_back(words[i]);
    }
  }
  if (!arguments.help && (arguments.output.empty() || arguments.inputs.empty())) {
    throw treadle::UsageError(kUsage);
  }
  return arguments;
}

void write(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file)
    throw treadle::StorageError(path.string() + ": cannot be written");
}

int run(const std::vector<std::string_view>& words) {
  const Arguments arguments = parse(words);
  if (arguments.help) {
    std::cout << kUsage;
    return 0;
  }
  const treadle::PackedManifest packed =
      treadle::pack_manifest(arguments.inputs.front(), std::span(arguments.inputs).subspan(1));
  if (!packed.problems.empty())
    throw treadle::DocumentError(packed.problems);
  write(arguments.output, treadle::notes_source(packed.manifest, arguments.tbb));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run({argv + 1, argv + argc});
  } catch (const treadle::Error& error) {
    std::cerr << error.what() << '\n';
    return error.exit_code();
  } catch (const std::exception& error) {
    std::cerr << "treadle-pack: " << error.what() << '\n';
    return static_cast<int>(treadle::ErrorKind::kInternal);
  }
}
