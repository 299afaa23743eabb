class Moothall < Formula
  desc "@SUMMARY@"
  homepage "@URL@"
  version "@VERSION@"
  license any_of: ["MIT", "Apache-2.0"]

  @SYSTEMS@

  def install
    rm "share/moothall/install.json"
    bin.install Dir["bin/*"]
    man1.install Dir["share/man/man1/*"]
    bash_completion.install "share/bash-completion/completions/moothall"
    fish_completion.install "share/fish/vendor_completions.d/moothall.fish"
    zsh_completion.install "share/zsh/site-functions/_moothall"
    doc.install Dir["share/doc/moothall/*"]
    (share/"moothall/install.json").write "{\"kind\":\"homebrew\",\"version\":\"#{version}\"}\n"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/moothall --version")
    assert_match "do nothing", shell_output("#{bin}/moothall consult HLXI --model demo --moves 3 --rounds 2").downcase
  end
end
