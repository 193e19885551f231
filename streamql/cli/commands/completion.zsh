#compdef streamql
# Completion of the streamql command in zsh. Printed by `streamql completion zsh`.

# Set what may stand behind the command $1; empty: before any command.
_streamql_spec() {
    case "$1" in
    # CASES
    *)
        options=() valued=() files=() directories=() operands=() takes_files=1 choices=''
        ;;
    esac
}

_streamql() {
    local command='' option='' choices takes_files i given
    local -a options valued files directories operands
    _streamql_spec ''
    for ((i = 2; i < CURRENT; i++)); do
        given="${words[i]}"
        if [[ -n $option ]]; then
            option=''
        elif (( ${valued[(Ie)$given]} )); then
            option="$given"
        elif [[ -z $command && $given != -* ]]; then
            command="$given"
            _streamql_spec "$command"
        fi
    done
    given="${words[CURRENT]}"
    if [[ -z $option && $given == --*=* ]]; then
        option="${given%%=*}"
        compset -P '*='
    fi
    if [[ -n $option ]]; then
        if (( ${files[(Ie)$option]} )); then
            _files
        elif (( ${directories[(Ie)$option]} )); then
            _files -/
        elif [[ $choices == *" $option="* ]]; then
            choices="${choices#* $option=}"
            compadd -- ${=choices%% ;*}
        fi
    elif [[ $given == -* ]]; then
        _describe -o option options
    elif (( takes_files )); then
        _files
    else
        _describe argument operands
    fi
}

if [[ $funcstack[1] == _streamql ]]; then
    _streamql "$@"
else
    compdef _streamql streamql
fi
