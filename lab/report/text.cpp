#include "lab/report/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>

namespace lockflight::report {
namespace {

constexpr std::string_view narrow_space = "\u202f";

std::string grouped(const std::string& digits) {
  if (digits.size() <= 4) return digits;  // four digits read well as they are
  std::string out;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i != 0 && (digits.size() - i) % 3 == 0) out += narrow_space;
    out += digits[i];
  }
  return out;
}

}  // namespace

std::string escape_html(std::string_view raw) {
  std::string out;
  out.reserve(raw.size());
  for (const char c : raw) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string script_json(const nlohmann::json& value) {
  // ASCII only, so that U+2028 and stray bytes cannot occur. The characters below can occur inside
  // JSON strings only, where the escape means the same.
  const std::string dumped = value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  std::string out;
  out.reserve(dumped.size());
  for (const char c : dumped) {
    switch (c) {
      case '<':
        out += "\\u003c";
        break;
      case '>':
        out += "\\u003e";
        break;
      case '&':
        out += "\\u0026";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string plain(const nlohmann::json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (value.is_null()) return "none";
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string rounded(double value) {
  if (value == 0 || !std::isfinite(value)) return "0";
  const double magnitude = std::floor(std::log10(std::abs(value)));
  if (magnitude >= 2) return grouped(fmt::format("{:.0f}", value));
  const int decimals = std::min(9, static_cast<int>(2 - magnitude));
  std::string out = fmt::format("{:.{}f}", value, decimals);
  out.erase(out.find_last_not_of('0') + 1);
  if (out.back() == '.') out.pop_back();
  return out.empty() ? "0" : out;
}

std::string scaled(double value) {
  constexpr struct {
    double unit;
    const char* suffix;
  } steps[] = {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}};
  for (const auto& step : steps) {
    // 0.9995 of a step would round up to "1000" of the smaller one.
    if (std::abs(value) >= step.unit * 0.9995) {
      return fmt::format("{}{}{}", rounded(value / step.unit), narrow_space, step.suffix);
    }
  }
  return rounded(value);
}

std::string counted(std::size_t n, std::string_view one, std::string_view many) {
  return fmt::format("{}{}{}", n, "\u00a0", n == 1 ? one : many);
}

// Makes a single pass over the template, so that braces inside the values are not replaced.
std::string filled(std::string_view page, const slots& values) {
  std::string out;
  while (true) {
    const std::size_t open = page.find("{{");
    out += page.substr(0, open);
    if (open == std::string_view::npos) return out;
    const std::size_t close = page.find("}}", open);
    if (close == std::string_view::npos) throw std::logic_error("template: {{ without }}");
    const std::string_view name = page.substr(open + 2, close - open - 2);
    const auto value = values.find(name);
    if (value == values.end()) {
      throw std::logic_error(fmt::format("template: nothing fills {{{{{}}}}}", name));
    }
    out += value->second;
    page.remove_prefix(close + 2);
  }
}

}  // namespace lockflight::report
