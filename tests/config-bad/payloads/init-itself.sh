#!/init
echo hello
