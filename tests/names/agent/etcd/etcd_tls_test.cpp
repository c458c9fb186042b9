// etcd over TLS, with certificates that the openssl program makes.
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "names/agent/etcd/client.hpp"
#include "tests/names/agent/etcd/etcd_server.hpp"

namespace lockflight::cluster {
namespace {

bool makes_certificate(const std::string& key, const std::string& certificate) {
  const std::string command =
      "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
      " -subj /O=lockflight-test -addext subjectAltName=IP:127.0.0.1"
      " -addext extendedKeyUsage=serverAuth,clientAuth"
      " -keyout '" +
      key + "' -out '" + certificate + "' >/dev/null 2>&1";
  return std::system(command.c_str()) == 0;
}

class EtcdTls : public testing::Test {
 protected:
  void SetUp() override {
    if (!test::etcd_server::is_installed())
      GTEST_SKIP() << "there is no /usr/bin/etcd (Debian: package etcd-server)";
    if (!makes_certificate(files.key, files.certificate))
      GTEST_SKIP() << "openssl makes no certificate (Debian: package openssl)";
    ASSERT_TRUE(makes_certificate(other.key, other.certificate));
    server = std::make_unique<test::etcd_server>(files);
  }

  /// The server's options with other files.
  [[nodiscard]] std::string error_with(const tls_files& tls) const {
    etcd_options options = server->options();
    options.tls = tls;
    try {
      etcd_client client(test::loop(), options, "d");
      (void)test::now(client.ping());
      return "";
    } catch (const etcd_error& e) {
      EXPECT_NE(e.request(), fate::refused);
      EXPECT_SAYS(e.what(), server->url());
      return e.what();
    }
  }

  test::temporary_folder folder;
  // Each certificate is its own authority.
  test::etcd_server::tls_server files{folder.file("certificate.pem"),
                                      folder.file("certificate.pem"), folder.file("key.pem")};
  test::etcd_server::tls_server other{folder.file("other.pem"), folder.file("other.pem"),
                                      folder.file("other-key.pem")};
  std::unique_ptr<test::etcd_server> server;
};

TEST_F(EtcdTls, KnowsBothSides) {
  EXPECT_EQ(error_with({files.authority, files.certificate, files.key}), "");
  const transaction writes{{}, {{{key_kind::beat, 1}, beat_value{}}}, {}};
  etcd_client client(test::loop(), server->options(), "d");
  EXPECT_TRUE(test::now(client.carry_out(writes, 1, {"a:1", "a"})).what.succeeded);

  // The server's certificate is of no authority that the client knows.
  EXPECT_SAYS(error_with({other.authority, files.certificate, files.key}), "certificate");
  EXPECT_SAYS(error_with({"", files.certificate, files.key}), "certificate");
  // The client has no certificate, or one that the server does not know.
  EXPECT_SAYS(error_with({files.authority, "", ""}), "--cert and --key name it");
  EXPECT_SAYS(error_with({files.authority, "", files.key}), "--cert and --key name it");
  EXPECT_NE(error_with({files.authority, other.certificate, other.key}), "");
  // The client's key is missing, or that of another certificate.
  EXPECT_SAYS(error_with({files.authority, files.certificate, ""}), "--key names that of the key");
  EXPECT_SAYS(error_with({files.authority, files.certificate, other.key}),
              "--key is to name the key of --cert");
  // Files that are not there.
  EXPECT_NE(error_with({folder.file("none"), files.certificate, files.key}), "");
  EXPECT_NE(error_with({files.authority, folder.file("none"), files.key}), "");
}

}  // namespace
}  // namespace lockflight::cluster
