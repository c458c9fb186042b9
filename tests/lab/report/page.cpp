// report_page FILE.json FILE.html: `lockflight report` without the rest of the program, so that the
// browser test needs the report library only.
#include <exception>
#include <fstream>
#include <iostream>

#include "lab/report/report.hpp"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: report_page FILE.json FILE.html\n";
    return 2;
  }
  try {
    std::ofstream out(argv[2], std::ios::binary);
    out << lockflight::report::render_html(lockflight::report::parse_file(argv[1]),
                                           {"flight", "flight-rw"});
    return out.flush() ? 0 : 3;
  } catch (const lockflight::report::bad_input& e) {
    std::cerr << "report_page: " << e.what() << '\n';
    return 2;
  } catch (const std::exception& e) {
    std::cerr << "report_page: " << e.what() << '\n';
    return 3;
  }
}
