class Holdfast < Formula
  desc "Run commands under locks that hosts share"
  homepage "https://github.com/holdfast-locks/holdfast"
  version "{{.Version}}"
  license "Apache-2.0"

  on_macos do
    on_arm do
      url "{{.At}}darwin_arm64.tar.gz"
      sha256 "{{index .Sums "darwin_arm64"}}"
    end
    on_intel do
      url "{{.At}}darwin_amd64.tar.gz"
      sha256 "{{index .Sums "darwin_amd64"}}"
    end
  end

  on_linux do
    on_arm do
      url "{{.At}}linux_arm64.tar.gz"
      sha256 "{{index .Sums "linux_arm64"}}"
    end
    on_intel do
      url "{{.At}}linux_amd64.tar.gz"
      sha256 "{{index .Sums "linux_amd64"}}"
    end
  end

  def install
    bin.install "holdfast"
    man1.install Dir["man/*.1"]
    bash_completion.install "completions/holdfast.bash" => "holdfast"
    zsh_completion.install "completions/holdfast.zsh" => "_holdfast"
    fish_completion.install "completions/holdfast.fish"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/holdfast version")
    assert_equal "mine\n", shell_output("#{bin}/holdfast run brew -- echo mine")
  end
end
