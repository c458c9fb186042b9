// Asio's own functions, compiled once for all files that include it.
#include <asio/impl/src.hpp>
#include <asio/ssl/impl/src.hpp>
