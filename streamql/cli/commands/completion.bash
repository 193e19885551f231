# Completion of the streamql command in bash. Printed by `streamql completion bash`.

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
    local word="${COMP_WORDS[COMP_CWORD]}" command='' option='' choices takes_files i given
    local -a options valued files directories operands
    COMPREPLY=()
    _streamql_spec ''
    # bash makes three words of --output=csv: the second is the equals sign.
    for ((i = 1; i < COMP_CWORD; i++)); do
        given="${COMP_WORDS[i]}"
        if [[ -n $option ]]; then
            [[ $given == '=' ]] || option=''
        elif [[ " ${valued[*]} " == *" $given "* ]]; then
            option="$given"
        elif [[ -z $command && $given != -* ]]; then
            command="$given"
            _streamql_spec "$command"
        fi
    done
    [[ $word == '=' ]] && word=''
    if [[ -n $option ]]; then
        if [[ " ${files[*]} " == *" $option "* ]]; then
            _streamql_paths -f "$word"
        elif [[ " ${directories[*]} " == *" $option "* ]]; then
            _streamql_paths -d "$word"
        elif [[ $choices == *" $option="* ]]; then
            choices="${choices#* $option=}"
            COMPREPLY=($(compgen -W "${choices%% ;*}" -- "$word"))
        fi
    elif [[ $word == -* ]]; then
        COMPREPLY=($(compgen -W "${options[*]}" -- "$word"))
    elif ((takes_files)); then
        _streamql_paths -f "$word"
    else
        COMPREPLY=($(compgen -W "${operands[*]}" -- "$word"))
    fi
}

# Complete paths, in which there may be spaces. $1: -f files, -d directories.
_streamql_paths() {
    local IFS=$'\n'
    compopt -o filenames 2> /dev/null
    COMPREPLY=($(compgen "$1" -- "$2"))
}

complete -F _streamql streamql
