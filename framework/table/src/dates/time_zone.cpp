#include <treadle/table/time_zone.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>

namespace treadle::table {
namespace {

constexpr std::int64_t kLargestOffset = 26 * 3600;  // RFC 8536, 3.2: 25:59:59

/// Numbers of a TZif file, in network order.
class ZoneBytes {
 public:
  explicit ZoneBytes(std::string_view bytes) : bytes_(bytes) {}

  bool has(std::size_t count) const { return bytes_.size() >= count; }
  void skip(std::size_t count) { bytes_.remove_prefix(count); }
  std::string_view rest() const { return bytes_; }
  std::string_view take(std::size_t count) {
    const std::string_view taken = bytes_.substr(0, count);
    skip(count);
    return taken;
  }
  std::uint8_t byte() { return static_cast<std::uint8_t>(take(1)[0]); }
  std::int64_t number(int bytes) {
    std::uint64_t value = 0;
    for (int i = 0; i < bytes; ++i)
      value = value << 8 | byte();
    return bytes == 4 ? std::int64_t{static_cast<std::int32_t>(static_cast<std::uint32_t>(value))}
                      : std::bit_cast<std::int64_t>(value);
  }

 private:
  std::string_view bytes_;
};

/// RFC 8536, 3.1.
struct ZoneHeader {
  char version = 0;
  std::size_t utc_marks = 0;
  std::size_t standard_marks = 0;
  std::size_t leap_seconds = 0;
  std::size_t transitions = 0;
  std::size_t types = 0;
  std::size_t letters = 0;

  std::size_t block_size(std::size_t time_size) const {
    return transitions * (time_size + 1) + types * 6 + letters + leap_seconds * (time_size + 4) +
           standard_marks + utc_marks;
  }
};

std::optional<ZoneHeader> read_header(ZoneBytes& bytes) {
  constexpr std::size_t kSize = 44;
  constexpr std::size_t kMostEntries = 100'000;
  if (!bytes.has(kSize) || bytes.take(4) != "TZif")
    return std::nullopt;
  ZoneHeader header;
  header.version = static_cast<char>(bytes.byte());
  bytes.skip(15);
  for (std::size_t* count : {&header.utc_marks, &header.standard_marks, &header.leap_seconds,
                             &header.transitions, &header.types, &header.letters}) {
    const std::int64_t value = bytes.number(4);
    if (value < 0 || value > static_cast<std::int64_t>(kMostEntries))
      return std::nullopt;
    *count = static_cast<std::size_t>(value);
  }
  // Times of files with leap seconds ("right/Europe/Berlin") are not those of POSIX.
  if (header.types == 0 || header.leap_seconds > 0)
    return std::nullopt;
  return header;
}

std::int64_t clock_offset(const std::string& name) {
  const auto digit = [&](std::size_t i) { return name[i] - '0'; };
  const std::int64_t seconds = (10 * digit(1) + digit(2)) * 3600 + (10 * digit(4) + digit(5)) * 60;
  return name[0] == '-' ? -seconds : seconds;
}

bool is_offset(const std::string& name) {
  const auto is_digit = [&](std::size_t i) {
    return std::isdigit(static_cast<unsigned char>(name[i])) != 0;
  };
  return name.size() == 6 && (name[0] == '+' || name[0] == '-') && name[3] == ':' && is_digit(1) &&
         is_digit(2) && is_digit(4) && is_digit(5) && name.substr(1, 2) < "24" && name[4] < '6';
}

/// Whether the name is one of a zone, and so stays below the folder of zones.
bool is_zone_name(const std::string& name) {
  return !name.empty() && name.size() < 100 && name.front() != '/' &&
         name.find("..") == std::string::npos &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '+' || c == '/';
         });
}

std::filesystem::path zone_folder() {
  const char* const folder = std::getenv("TZDIR");
  return folder != nullptr && *folder != '\0' ? folder : "/usr/share/zoneinfo";
}

}  // namespace

TimeZone TimeZone::load(const std::string& name) {
  TimeZone zone;
  zone.name_ = name;
  if (name == "UTC" || name == "Z")
    return zone;
  if (is_offset(name)) {
    zone.first_ = clock_offset(name);
    return zone;
  }
  const std::filesystem::path folder = zone_folder();
  std::error_code error;
  if (is_zone_name(name) && !std::filesystem::is_directory(folder, error)) {
    throw DataError("the time zone " + quote_text(name) +
                    " needs the tz database, but the folder " + folder.string() +
                    " does not exist; install the package tzdata, or give an offset such as "
                    "\"+01:00\"");
  }
  if (!is_zone_name(name) || !std::filesystem::is_regular_file(folder / name, error)) {
    throw UsageError(quote_text(name) + " is no time zone of " + folder.string() +
                     "; zones are named as \"Europe/Berlin\", \"UTC\" or \"+01:00\"");
  }
  std::ifstream file(folder / name, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  std::optional<TimeZone> read = parse(bytes, name);
  if (!read)
    throw DataError((folder / name).string() + ": is not a file of the tz database (TZif)");
  return *std::move(read);
}

std::optional<TimeZone> TimeZone::parse(std::string_view text, std::string name) {
  ZoneBytes bytes(text);
  std::optional<ZoneHeader> header = read_header(bytes);
  std::size_t time_size = 4;
  if (header && header->version >= '2') {
    if (!bytes.has(header->block_size(4)))
      return std::nullopt;
    bytes.skip(header->block_size(4));
    header = read_header(bytes);
    time_size = 8;
  }
  if (!header || !bytes.has(header->block_size(time_size)))
    return std::nullopt;

  TimeZone zone;
  zone.name_ = std::move(name);
  zone.transitions_.resize(header->transitions);
  for (std::size_t i = 0; i < zone.transitions_.size(); ++i) {
    zone.transitions_[i].utc = bytes.number(static_cast<int>(time_size));
    if (i > 0 && zone.transitions_[i].utc <= zone.transitions_[i - 1].utc)
      return std::nullopt;
  }
  const std::string_view types = bytes.take(header->transitions);
  std::vector<std::int64_t> offsets;
  for (std::size_t i = 0; i < header->types; ++i) {
    offsets.push_back(bytes.number(4));
    bytes.skip(2);
    if (std::abs(offsets.back()) >= kLargestOffset)
      return std::nullopt;
  }
  for (std::size_t i = 0; i < zone.transitions_.size(); ++i) {
    const auto type = static_cast<unsigned char>(types[i]);
    if (type >= offsets.size())
      return std::nullopt;
    zone.transitions_[i].offset = offsets[type];
  }
  zone.first_ = offsets[0];
  bytes.skip(header->letters + header->leap_seconds * (time_size + 4) + header->standard_marks +
             header->utc_marks);
  if (time_size == 4)
    return zone;
  // The footer: a rule between two line ends, which may be empty.
  std::string_view footer = bytes.rest();
  const std::size_t end = footer.starts_with('\n') ? footer.find('\n', 1) : std::string_view::npos;
  if (end == std::string_view::npos)
    return std::nullopt;
  footer = footer.substr(1, end - 1);
  if (!footer.empty()) {
    zone.rule_ = read_yearly_rule(footer);
    if (!zone.rule_)
      return std::nullopt;
  }
  return zone;
}

std::int64_t TimeZone::offset_at(std::int64_t utc) const {
  if (rule_ && (transitions_.empty() || utc >= transitions_.back().utc))
    return rule_->offset_at(utc);
  const auto after =
      std::upper_bound(transitions_.begin(), transitions_.end(), utc,
                       [](std::int64_t time, const Transition& t) { return time < t.utc; });
  return after == transitions_.begin() ? first_ : std::prev(after)->offset;
}

// An offset is right where the instant that it gives has that offset. Clocks are not changed twice
// within two days.
TimeZone::Offsets TimeZone::offsets_of(std::int64_t local) const {
  constexpr std::int64_t kDay = 86400;
  Offsets offsets;
  if (transitions_.empty() && !rule_) {
    offsets.count = 1;
    offsets.seconds[0] = first_;
    return offsets;
  }
  const std::int64_t before = offset_at(local - kDay);
  const std::int64_t after = offset_at(local + kDay);
  // The larger one is that of the earlier instant.
  for (const std::int64_t offset : {std::max(before, after), std::min(before, after)}) {
    if (offset_at(local - offset) != offset)
      continue;
    if (offsets.count == 0 || offsets.seconds[0] != offset)
      offsets.seconds[static_cast<std::size_t>(offsets.count++)] = offset;
  }
  return offsets;
}

}  // namespace treadle::table
