#include <treadle/host/launch/host_facts.h>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>

#include <treadle/base/system/host_name.h>
#include <treadle/base/system/processors.h>
#include <treadle/base/version.h>
#include <treadle/host/launch/addresses.h>

namespace treadle::launch {
namespace {

/// As Linux calls them. libtorch chooses its kernels by these.
constexpr std::array kFeatures{"avx2", "fma", "avx512f", "avx512bw", "avx512dq", "avx512vl"};

/// The value of the first line "name : value" of /proc/cpuinfo.
std::string of_processor(const std::string& name) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (colon != std::string::npos && line.starts_with(name) &&
        line.find_first_not_of(" \t", name.size()) == colon)
      return line.substr(std::min(colon + 2, line.size()));
  }
  return {};
}

}  // namespace

HostFacts HostFacts::of_this_host() {
  HostFacts facts;
  facts.name = host_name();
  facts.version = treadle::version();
  facts.processor = of_processor("model name");
  std::istringstream flags(of_processor("flags"));
  for (std::string flag; flags >> flag;) {
    if (std::find(kFeatures.begin(), kFeatures.end(), flag) != kFeatures.end())
      facts.features.push_back(flag);
  }
  std::sort(facts.features.begin(), facts.features.end());
  facts.cores = available_cores();
  constexpr std::int64_t kMebibyte = 1 << 20;
  facts.memory_mib = static_cast<std::int64_t>(::sysconf(_SC_PHYS_PAGES)) *
                     static_cast<std::int64_t>(::sysconf(_SC_PAGESIZE)) / kMebibyte;
  facts.addresses = own_addresses();
  return facts;
}

HostFacts HostFacts::from(const nlohmann::json& value) {
  HostFacts facts;
  value.at("host").get_to(facts.name);
  value.at("version").get_to(facts.version);
  value.at("processor").get_to(facts.processor);
  value.at("features").get_to(facts.features);
  value.at("cores").get_to(facts.cores);
  value.at("memory_mib").get_to(facts.memory_mib);
  value.at("addresses").get_to(facts.addresses);
  return facts;
}

nlohmann::json HostFacts::json() const {
  return {{"host", name},          {"version", version}, {"processor", processor},
          {"features", features},  {"cores", cores},     {"memory_mib", memory_mib},
          {"addresses", addresses}};
}

}  // namespace treadle::launch
