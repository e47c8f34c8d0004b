// The CSV reader on one core: 400 000 rows of 20 numbers and a header, read as a workflow reads them. Prints MB/s of
// CPU time, a line a round.
#include <sys/resource.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <vector>

#include <treadle/base/config.h>
#include <treadle/core/data_provider.h>
#include <treadle/core/plugin_registry.h>
#include <treadle/host/run/runtime.h>

namespace {

namespace fs = std::filesystem;

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) { return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6; };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void write_table(const fs::path& path) {
  std::ofstream file(path, std::ios::binary);
  std::string line;
  for (int c = 0; c < 20; ++c) line += (c == 0 ? "x" : ",x") + std::to_string(c);
  file << line << '\n';
  std::uint32_t state = 1;
  for (int r = 0; r < 400000; ++r) {
    line.clear();
    for (int c = 0; c < 20; ++c) {
      state = state * 1664525u + 1013904223u;
      char text[32];
      const auto end = std::to_chars(text, text + sizeof text, static_cast<double>(state) / (1u << 24)).ptr;
      if (c > 0) line += ',';
      line.append(text, end);
    }
    file << line << '\n';
  }
}

}  // namespace

int main() {
  const fs::path path = fs::temp_directory_path() / "treadle-csv-read.csv";
  write_table(path);
  const auto bytes = static_cast<double>(fs::file_size(path));
  const treadle::Runtime runtime;
  std::vector<double> speeds;
  for (int round = 0; round < 7; ++round) {
    const auto data = runtime.registry().make<treadle::DataProvider>(
        "csv", treadle::Config({{"path", path.string()}, {"target", "x19"}}, "/data"));
    const double start = cpu_seconds();
    data->open({});
    speeds.push_back(bytes / 1e6 / (cpu_seconds() - start));
    std::printf("%.0f MB/s of %.0f MB\n", speeds.back(), bytes / 1e6);
  }
  std::sort(speeds.begin(), speeds.end());
  std::printf("median %.0f MB/s\n", speeds[speeds.size() / 2]);
  fs::remove(path);
}
