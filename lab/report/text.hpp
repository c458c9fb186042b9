// Text for the page: escaping, and readable numbers.
#pragma once

#include <nlohmann/json.hpp>

#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace lockflight::report {

/// `raw` as HTML text or attribute value.
std::string escape_html(std::string_view raw);

/// `value` as JSON that may stand inside a script element: nothing in it can end the element or
/// start a comment.
std::string script_json(const nlohmann::json& value);

/// A scalar as a reader would write it: strings without quotes, yes and no.
std::string plain(const nlohmann::json& value);

/// Three significant digits, no exponent, digits grouped by thousands.
std::string rounded(double value);

/// Three significant digits with k, M, G or T.
std::string scaled(double value);

/// "1 run", "3 runs".
std::string counted(std::size_t n, std::string_view one, std::string_view many);

/// The values for a page's template, by name.
using slots = std::map<std::string, std::string, std::less<>>;

/// Replaces each {{name}} of a template by the value of that name; braces inside the values are not
/// replaced. Throws std::logic_error if a name has no value.
std::string filled(std::string_view page, const slots& values);

}  // namespace lockflight::report
