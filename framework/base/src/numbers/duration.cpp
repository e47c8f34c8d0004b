#include <treadle/base/duration.h>

#include <array>
#include <charconv>
#include <cmath>
#include <stdexcept>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>

namespace treadle {
namespace {

struct WrittenUnit {
  std::string_view suffix;
  Duration::Unit unit;
  double scale;  // of the number before the suffix, to the stored value
};

// Longest form first where one unit can be written in several: text() takes the first that fits.
constexpr std::array kUnits{
    WrittenUnit{"%", Duration::Unit::kFraction, 0.01},
    WrittenUnit{"ep", Duration::Unit::kEpochs, 1},
    WrittenUnit{"st", Duration::Unit::kSteps, 1},
    WrittenUnit{"h", Duration::Unit::kSeconds, 3600},
    WrittenUnit{"min", Duration::Unit::kSeconds, 60},
    WrittenUnit{"m", Duration::Unit::kSeconds, 60},  // only read
    WrittenUnit{"s", Duration::Unit::kSeconds, 1},
};

[[noreturn]] void refuse(std::string_view text, std::string_view wanted) {
  throw std::invalid_argument("expected " + std::string(wanted) + ", got " + quote_text(text));
}

// Digits with at most one point in them: no sign, exponent, space, "inf" or "nan".
bool is_plain_number(std::string_view text) {
  return !text.empty() && text.front() != '.' && text.back() != '.' &&
         text.find_first_not_of("0123456789.") == std::string_view::npos &&
         text.find('.') == text.rfind('.');
}

double read_number(std::string_view digits) {
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return error == std::errc() ? value : HUGE_VAL;
}

std::string write_number(double value) {
  std::array<char, 400> buffer;  // 309 digits before the point at most
  const auto [end, error] =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::fixed);
  return {buffer.data(), end};
}

// The shortest decimal of value * 100, with the point moved in the text: multiplying would round,
// and 7 % would come back as 7.000000000000001 %.
std::string write_percent(double value) {
  std::string text = write_number(value);
  std::size_t point = text.find('.');
  if (point == std::string::npos) {
    if (value != 0)
      text += "00";
    return text;
  }
  text.erase(point, 1);
  while (text.size() < point + 2)
    text += '0';
  point += 2;
  if (point < text.size())
    text.insert(point, 1, '.');
  const std::size_t zeros = text.find_first_not_of('0');
  if (zeros != std::string::npos)
    text.erase(0, text[zeros] == '.' ? zeros - 1 : zeros);
  return text;
}

}  // namespace

Duration Duration::parse(std::string_view text) {
  constexpr std::string_view kForms =
      "a duration such as \"5%\", \"10ep\" (epochs), \"500st\" (steps), \"2h\", \"30min\" or "
      "\"45s\"";
  const std::size_t digits = text.find_first_not_of("0123456789.");
  if (digits == std::string_view::npos)
    refuse(text, kForms);
  const std::string_view number = text.substr(0, digits);
  const std::string_view suffix = text.substr(digits);
  for (const WrittenUnit& written : kUnits) {
    if (written.suffix != suffix || !is_plain_number(number))
      continue;
    Duration duration;
    duration.unit = written.unit;
    if (written.unit == Unit::kFraction) {
      duration.value = read_number(std::string(number) + "e-2");
      if (duration.value > 1)
        refuse(text, "at most 100% of the training");
    } else {
      duration.value = read_number(number) * written.scale;
      if (written.unit == Unit::kSteps && duration.value != std::floor(duration.value)) {
        refuse(text, "a whole number of steps");
      }
      // Beyond 2^53 a double no longer counts in ones.
      if (!(duration.value <= 0x1p53))
        refuse(text, "a duration that fits a training");
    }
    return duration;
  }
  refuse(text, kForms);
}

std::string Duration::text() const {
  for (const WrittenUnit& written : kUnits) {
    if (written.unit != unit)
      continue;
    if (unit == Unit::kFraction)
      return write_percent(value) + '%';
    const double number = value / written.scale;
    const bool last_form = written.scale == 1;
    if (last_form || (number == std::floor(number) && number > 0)) {
      return write_number(number) + std::string(written.suffix);
    }
  }
  throw ContractViolation("Duration has a unit that does not exist");
}

std::int64_t Duration::steps(std::int64_t steps_per_epoch, std::int64_t total_steps) const {
  TREADLE_EXPECTS(unit != Unit::kSeconds, "wall time cannot be counted in steps");
  TREADLE_EXPECTS(steps_per_epoch >= 1, "an epoch has at least one step");
  TREADLE_EXPECTS(total_steps >= 0, "a training cannot have fewer than zero steps");
  double count = value;
  if (unit == Unit::kFraction)
    count *= static_cast<double>(total_steps);
  if (unit == Unit::kEpochs)
    count *= static_cast<double>(steps_per_epoch);
  return std::llround(count);
}

}  // namespace treadle
