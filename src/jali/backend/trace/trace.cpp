#include "jali/backend/trace/trace.h"

#include <iomanip>
#include <map>
#include <ostream>
#include <sstream>
#include <utility>

namespace jali::backend {

namespace {

template <class Range, class Print>
void write_list(std::ostream& out, const Range& range, Print print) {
  out << '[';
  const char* separator = "";
  for (const auto& x : range) {
    out << separator;
    print(x);
    separator = ", ";
  }
  out << ']';
}

// Names of operations and words are plain identifiers, so nothing needs escaping.
void write_json(std::ostream& out, const Record& r) {
  const auto number = [&](const auto& x) { out << +x; };
  const auto extent = [&](const Extent& e) { out << '[' << e.address << ", " << e.bytes << ']'; };
  out << "{\"op\": \"" << r.op << "\", \"n\": " << r.n << ", \"word\": \"" << word_name(r.word)
      << "\", \"primes_in\": ";
  write_list(out, r.primes_in, number);
  out << ", \"primes_out\": ";
  write_list(out, r.primes_out, number);
  out << ", \"batch\": " << r.batch << ", \"digits\": ";
  write_list(out, r.digits, number);
  out << ", \"terms\": " << r.terms << ", \"galois\": " << r.galois
      << ", \"accumulate\": " << (r.accumulate ? "true" : "false") << ", \"reads\": ";
  write_list(out, r.reads, extent);
  out << ", \"writes\": ";
  write_list(out, r.writes, extent);
  out << ", \"bytes_read\": " << r.bytes_read << ", \"bytes_written\": " << r.bytes_written
      << ", \"mults\": " << r.mults << ", \"seconds\": " << r.seconds << "}\n";
}

}  // namespace

void Trace::append(Record record) {
  const std::lock_guard lock(mutex_);
  records_.push_back(std::move(record));
}

void Trace::clear() {
  const std::lock_guard lock(mutex_);
  records_.clear();
}

std::size_t Trace::size() const {
  const std::lock_guard lock(mutex_);
  return records_.size();
}

std::vector<Record> Trace::records() const {
  const std::lock_guard lock(mutex_);
  return records_;
}

std::vector<Total> Trace::totals() const {
  const std::lock_guard lock(mutex_);
  std::map<std::string, Total> by_name;
  for (const Record& r : records_) {
    Total& t = by_name[r.op];
    t.op = r.op;
    t.count += 1;
    t.bytes_read += r.bytes_read;
    t.bytes_written += r.bytes_written;
    t.mults += r.mults;
    t.seconds += r.seconds;
  }
  std::vector<Total> totals;
  for (auto& [name, total] : by_name) totals.push_back(std::move(total));
  return totals;
}

void Trace::write_json_lines(std::ostream& out) const {
  const std::lock_guard lock(mutex_);
  for (const Record& r : records_) write_json(out, r);
}

std::string Trace::summary() const {
  std::ostringstream out;
  out << std::left << std::setw(20) << "operation" << std::right << std::setw(10) << "count"
      << std::setw(14) << "MB read" << std::setw(14) << "MB written" << std::setw(14) << "M mults"
      << std::setw(12) << "ms" << '\n'
      << std::fixed;
  const auto row = [&](const Total& t) {
    out << std::left << std::setw(20) << t.op << std::right << std::setw(10) << t.count
        << std::setprecision(3) << std::setw(14) << static_cast<double>(t.bytes_read) / 1e6
        << std::setw(14) << static_cast<double>(t.bytes_written) / 1e6 << std::setw(14)
        << static_cast<double>(t.mults) / 1e6 << std::setw(12) << t.seconds * 1e3 << '\n';
  };
  Total all;
  all.op = "total";
  for (const Total& t : totals()) {
    row(t);
    all.count += t.count;
    all.bytes_read += t.bytes_read;
    all.bytes_written += t.bytes_written;
    all.mults += t.mults;
    all.seconds += t.seconds;
  }
  row(all);
  return out.str();
}

}  // namespace jali::backend
