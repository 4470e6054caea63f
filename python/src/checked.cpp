#include "checked.h"

namespace jali::python {

std::string Call::listed(std::size_t count) const {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) {
    out += std::string(i == 0 ? "" : ", ") + parameters_[i].name;
  }
  return out;
}

std::string Call::what(std::size_t parameter) const {
  return std::string(parameters_[parameter].name) + " of " + name_;
}

void Call::refuse_self(const std::string& wanted) const {
  raise_python("WrongCall", name_ + " was called on another object: it is a method of " + wanted);
}

std::vector<nb::object> Call::bind(const nb::args& args, const nb::kwargs& kwargs) const {
  const auto refuse_unless = [&](bool holds, const auto& why) {
    if (!holds) raise_python("WrongCall", name_ + why());
  };
  refuse_unless(!parameters_.empty() || args.size() + kwargs.size() == 0,
                [] { return " takes no arguments"; });
  refuse_unless(args.size() <= positional_, [&]() -> std::string {
    if (positional_ == 0) return " takes its arguments by name: " + listed(parameters_.size());
    return " takes at most " + std::to_string(positional_) +
           (positional_ == 1 ? " argument" : " arguments") + " without a name (" +
           listed(positional_) + "), not " + std::to_string(args.size()) +
           (positional_ < parameters_.size() ? ": give the others by name" : "");
  });
  std::vector<nb::object> out(parameters_.size());
  for (std::size_t i = 0; i < args.size(); ++i) out[i] = nb::borrow(args[i]);
  for (const auto& [key, value] : kwargs) {
    const std::string given = nb::cast<std::string>(key);
    std::size_t i = 0;
    while (i < parameters_.size() && given != parameters_[i].name) ++i;
    refuse_unless(i < parameters_.size(), [&] {
      return " has no argument \"" + given + "\": it takes " + listed(parameters_.size());
    });
    refuse_unless(!out[i].is_valid(), [&] { return " was given " + given + " twice"; });
    out[i] = nb::borrow(value);
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (out[i].is_valid()) continue;
    refuse_unless(parameters_[i].fallback.has_value(), [&] {
      return std::string(" needs ") + parameters_[i].name + ": it takes " +
             listed(parameters_.size());
    });
    out[i] = *parameters_[i].fallback;
  }
  return out;
}

}  // namespace jali::python
