#include <treadle/table/time_zone.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <treadle/base/error.h>

namespace treadle::table {
namespace {

struct Clock {
  const char* zone;
  std::int64_t local;
  std::vector<std::int64_t> offsets;
};

// By Python: time_zones.py.
const std::vector<Clock> kClocks{
    {"Europe/Berlin", -2524478400, {3208}},               // 1890-01-01 12:00
    {"Europe/Berlin", -776520000, {10800}},               // 1945-05-24 12:00
    {"Europe/Berlin", 1705305600, {3600}},                // 2024-01-15 08:00
    {"Europe/Berlin", 1711850340, {3600}},                // 2024-03-31 01:59
    {"Europe/Berlin", 1711852200, {}},                    // 2024-03-31 02:30
    {"Europe/Berlin", 1711854000, {7200}},                // 2024-03-31 03:00
    {"Europe/Berlin", 1729994340, {7200}},                // 2024-10-27 01:59
    {"Europe/Berlin", 1729994400, {7200, 3600}},          // 2024-10-27 02:00
    {"Europe/Berlin", 1729997940, {7200, 3600}},          // 2024-10-27 02:59
    {"Europe/Berlin", 1729998000, {3600}},                // 2024-10-27 03:00
    {"Europe/Berlin", 3321225000, {}},                    // 2075-03-31 02:30
    {"Europe/Berlin", 3329164800, {7200}},                // 2075-07-01 00:00
    {"Europe/Berlin", 3339369000, {7200, 3600}},          // 2075-10-27 02:30
    {"Europe/Berlin", 3345062340, {3600}},                // 2075-12-31 23:59
    {"Europe/Dublin", 1711848600, {}},                    // 2024-03-31 01:30
    {"Europe/Dublin", 1729992600, {3600, 0}},             // 2024-10-27 01:30
    {"Europe/Dublin", 2855865600, {3600}},                // 2060-07-01 00:00
    {"America/New_York", 9945000, {}},                    // 1970-04-26 02:30
    {"America/New_York", 1730597400, {-14400, -18000}},   // 2024-11-03 01:30
    {"America/New_York", 2530749600, {}},                 // 2050-03-13 02:00
    {"America/New_York", 2551309200, {-14400, -18000}},   // 2050-11-06 01:00
    {"America/Sao_Paulo", 1541291400, {}},                // 2018-11-04 00:30
    {"America/Sao_Paulo", 1893456000, {-10800}},          // 2030-01-01 00:00
    {"Australia/Lord_Howe", 1712454300, {39600, 37800}},  // 2024-04-07 01:45
    {"Australia/Lord_Howe", 1728180900, {}},              // 2024-10-06 02:15
    {"Australia/Lord_Howe", 2682374400, {39600}},         // 2055-01-01 00:00
    {"Asia/Kolkata", 1717200000, {19800}},                // 2024-06-01 00:00
    {"Asia/Tokyo", -588814200, {}},                       // 1951-05-06 00:30
    {"Pacific/Apia", 1325246400, {}},                     // 2011-12-30 12:00
    {"Pacific/Apia", 1325289600, {50400}},                // 2011-12-31 00:00
    {"UTC", 1709251140, {0}},                             // 2024-02-29 23:59
};

std::vector<std::int64_t> offsets_of(const TimeZone& zone, std::int64_t local) {
  const TimeZone::Offsets offsets = zone.offsets_of(local);
  return {offsets.seconds.begin(), offsets.seconds.begin() + offsets.count};
}

/// The yearly rule of central Europe, as a file without transitions.
std::string slim_file(const std::string& rule) {
  const std::string header = std::string("TZif2") + std::string(15, '\0');
  const auto number = [](int value) { return std::string(3, '\0') + static_cast<char>(value); };
  const std::string counts = number(0) + number(0) + number(0) + number(0) + number(1) + number(4);
  const std::string type = std::string("\0\0\x0E\x10\0\0", 6) + std::string("CET\0", 4);
  return header + counts + type + header + counts + type + "\n" + rule + "\n";
}

TEST(TimeZones, AreThoseOfTheSystem) {
  if (std::getenv("TZDIR") == nullptr && !std::filesystem::exists("/usr/share/zoneinfo/Asia/Tokyo"))
    GTEST_SKIP() << "needs the package tzdata";
  for (const Clock& clock : kClocks) {
    EXPECT_EQ(offsets_of(TimeZone::load(clock.zone), clock.local), clock.offsets)
        << clock.zone << " " << clock.local;
  }
}

TEST(TimeZones, MayBeFixedOffsets) {
  EXPECT_EQ(offsets_of(TimeZone::load("+05:45"), 0), std::vector<std::int64_t>{20700});
  EXPECT_EQ(TimeZone::load("-02:30").offset_at(0), -9000);
  EXPECT_EQ(TimeZone::load("UTC").offset_at(1'000'000), 0);
}

TEST(TimeZones, StayBelowTheirFolder) {
  for (const char* name : {"", "Europe", "Europe/Berlln", "../../../etc/passwd", "/etc/localtime",
                           "+25:00", "+1:00", "Europe/Berlin\n"}) {
    EXPECT_THROW(TimeZone::load(name), Error) << name;
  }
}

TEST(TimeZones, FollowTheRuleOfTheirFile) {
  const auto zone = TimeZone::parse(slim_file("CET-1CEST,M3.5.0,M10.5.0/3"), "x");
  ASSERT_TRUE(zone);
  for (const Clock& clock : kClocks) {
    if (std::string(clock.zone) == "Europe/Berlin" && clock.local > 1'700'000'000) {
      EXPECT_EQ(offsets_of(*zone, clock.local), clock.offsets) << clock.local;
    }
  }
  const auto fixed = TimeZone::parse(slim_file("<+0330>-3:30"), "x");
  ASSERT_TRUE(fixed);
  EXPECT_EQ(fixed->offset_at(0), 12600);
  // Days of the year: J60 is March 1 always, 59 is February 29 where there is one.
  const auto days = TimeZone::parse(slim_file("AAA0BBB,J60/0,90/0"), "x");
  ASSERT_TRUE(days);
  constexpr std::int64_t kMarch1 = 1709251200;  // of 2024
  EXPECT_EQ(days->offset_at(kMarch1 - 1), 0);
  EXPECT_EQ(days->offset_at(kMarch1), 3600);
  EXPECT_EQ(days->offset_at(kMarch1 + std::int64_t{30} * 86400 - 3601), 3600);
  EXPECT_EQ(days->offset_at(kMarch1 + std::int64_t{30} * 86400 - 3600), 0);
}

TEST(TimeZones, RefuseDamagedFiles) {
  const std::string whole = slim_file("CET-1CEST,M3.5.0,M10.5.0/3");
  ASSERT_TRUE(TimeZone::parse(whole, "x"));
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(TimeZone::parse(whole.substr(0, size), "x")) << size;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    for (const int change : {1, 0x80, 0xFF}) {
      std::string changed = whole;
      changed[i] = static_cast<char>(changed[i] ^ change);
      if (const auto zone = TimeZone::parse(changed, "x")) {
        EXPECT_LE(std::abs(zone->offset_at(1'700'000'000)), 26 * 3600) << i;
      }
    }
  }
  for (const char* rule : {"C-1", "CET", "CET-1CEST,", "CET-1CEST,M13.1.0,M10.5.0",
                           "CET-1CEST,M3.6.0,M10.5.0", "CET-1CEST,M3.5.0", "CET-99", "<CET-1",
                           "CET-1CEST,J0,J9", "CET-1CEST,M3.5.0,M10.5.0/168", "CET-1 "}) {
    EXPECT_FALSE(TimeZone::parse(slim_file(rule), "x")) << rule;
  }
}

}  // namespace
}  // namespace treadle::table
