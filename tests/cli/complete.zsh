# What zsh offers for the last word of a line, one a line.
# usage: zsh -f complete.zsh SCRIPT LINE
#
# Zsh completes at a prompt only. So a second one runs at a terminal of ours, and there compadd,
# which is told what matches, prints it.
zmodload zsh/zpty
zpty -b shell zsh -f -i
zpty -w shell "PROMPT=; autoload -Uz compinit; compinit -u -D; source ${(q)1}"
# With -O, -A or -D it fills an array and offers nothing.
zpty -w shell 'compadd() {
  [[ " $* " != *" -"[OAD]" "* ]] || { builtin compadd "$@"; return }
  local -a matches
  builtin compadd -O matches "$@"
  (( ! $#matches )) || print -rl -- "offer<"$^matches">"
}'
zpty -w shell 'finish() { zle complete-word; print done"<>"; exit }
zle -N finish; bindkey "^I" finish; print ready"<>"'
zpty -r shell said '*ready<>*'
zpty -n -w shell "$2"$'\t'
zpty -r shell said '*done<>*'
setopt extended_glob
for line in ${(f)${said//$'\r'/}}; do
  [[ $line != (#b)*'offer<'(*)'>' ]] || print -r -- $match[1]
done
