 #!/bin/sh
echo hello
